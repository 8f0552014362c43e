#include <fmt/format.h>

#include "store/paths.h"
#include "store/repeat.h"
#include "store/transaction.h"

namespace nodepool::store {

bool LockedNode::is_held() const { return store_->IsHeld(lock_); }

Task<bool> LockedNode::Update(std::function<Change(Node&)> change) {
  using Write = Transaction<StoredNode>;
  Write write(store_->loop_, store_->client_, store_->random_, node_, std::move(change));
  write.KeepLock(lock_);
  Write::Outcome outcome = co_await write.Run();
  if (outcome == Write::Outcome::kGone) {
    throw Error(Verdict::kNotFound, fmt::format("node {} does not exist any more", node_.id));
  }
  co_return outcome == Write::Outcome::kDone;
}

Task<> LockedNode::Unlock() { co_await store_->locker_.Release(lock_); }

Task<> LockedNode::Remove() {
  std::function<Task<bool>()> attempt = [this] { return store_->TryRemove(node_, lock_); };
  for (bool is_done = false; !is_done;) is_done = co_await Repeat(store_->loop_, store_->random_, attempt);
}

Task<bool> Store::TryRemove(StoredNode& node, zk::HeldLock lock) {
  if (!IsHeld(lock)) {
    throw Error(Verdict::kLostSession,
                fmt::format("node {}: the session in which it was locked is over", node.id));
  }
  std::string path = paths::Node(node.id);
  node.record.SetState(NodeState::kDeleted, loop_.Now());
  zk::SetOp set{path, ToJson(node.record), node.revision.version};
  std::vector<zk::Op> ops;
  ops.emplace_back(set);
  ops.emplace_back(zk::DeleteOp{lock.path, -1});
  ops.emplace_back(zk::DeleteOp{paths::NodeLock(node.id), -1});
  ops.emplace_back(zk::DeleteOp{path, -1});
  zk::MultiResult removed = co_await client_.Multi(std::move(ops));
  if (removed.ok()) co_return true;

  if (removed.failed > 0) {
    // Others contend: they are told by the state and swept away with the rest.
    zk::Result<zk::Stat> written = co_await client_.Set(set.path, set.data, set.version);
    if (written) {
      node.revision = RevisionOf(*written);
      zk::Result<> deleted = co_await zk::DeleteRecursive(client_, path);
      if (deleted) co_return true;
      throw Error(Verdict::kConflict,
                  fmt::format("node {}: others keep locking it while it is removed", node.id));
    }
  }
  // The record itself was the obstacle: gone, or newer than we know.
  zk::Result<zk::Stat> now = co_await client_.Exists(path);
  if (!now) co_return true;
  node.revision = RevisionOf(*now);
  co_return false;
}

}  // namespace nodepool::store
