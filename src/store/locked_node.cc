#include <fmt/format.h>

#include <algorithm>

#include "store/node_deletion.h"
#include "store/paths.h"
#include "store/repeat.h"
#include "store/transaction.h"

namespace nodepool::store {
namespace {

// How often a removal is tried while others come and go.
constexpr int kRemovals = 10;

}  // namespace

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
  // At first as if nobody else contended, which needs no look.
  std::vector<std::string> below{lock_.path, paths::NodeLock(node_.id)};
  std::function<Task<bool>()> attempt = [&] { return store_->TryRemove(node_, lock_, below); };
  for (int i = 0; i < kRemovals; ++i) {
    bool is_done = co_await Repeat(store_->loop_, store_->random_, attempt);
    if (is_done) co_return;
  }
  throw Error(Verdict::kConflict,
              fmt::format("node {}: others keep locking it while it is removed", node_.id));
}

Task<bool> Store::TryRemove(StoredNode& node, zk::HeldLock lock, std::vector<std::string>& below) {
  if (!IsHeld(lock)) {
    throw Error(Verdict::kLostSession,
                fmt::format("node {}: the session in which it was locked is over", node.id));
  }
  std::vector<zk::Op> ops = DeletionOf(node, below, loop_.Now());
  zk::MultiResult removed = co_await client_.Multi(std::move(ops));
  if (removed.ok()) co_return true;
  // Gone, or newer than we know, or others have come or left.
  zk::Result<zk::Stat> now = co_await client_.Exists(paths::Node(node.id));
  if (!now) co_return true;
  node.revision = RevisionOf(*now);
  below = co_await ZnodesBelow(client_, node.id);
  bool is_ours = below.empty() || std::ranges::find(below, lock.path) != below.end();
  if (!is_ours) throw Error(Verdict::kLostSession, fmt::format("node {}: the lock is gone", node.id));
  co_return false;
}

}  // namespace nodepool::store
