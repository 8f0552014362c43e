#include "store/locked_record.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/decode.h"
#include "store/node_deletion.h"
#include "store/transaction.h"

namespace nodepool::store {
namespace {

// How often a removal is tried while other contenders come and leave.
constexpr int kRemovals = 10;

}  // namespace

template <class Stored>
Task<bool> LockedRecord<Stored>::Update(std::function<Change(Record&)> change) {
  return UpdateRecord<Stored>(*tree_, stored_, lock_, std::move(change));
}

template <class Stored>
Task<> LockedRecord<Stored>::Unlock() {
  if (is_unlocked_) co_return;
  co_await tree_->Unlock(lock_);
  is_unlocked_ = true;
}

template class LockedRecord<StoredNode>;
template class LockedRecord<StoredRequest>;

Task<> LockedNode::Remove() {
  // The first attempt assumes that there is no other contender, which needs no read.
  std::vector<std::string> below{lock().path, paths::NodeLock(id())};
  auto attempt = [&] { return TryRemove(below); };
  for (int i = 0; i < kRemovals; ++i) {
    bool is_done = co_await tree().Repeat<bool>(attempt);
    if (is_done) {
      SetUnlocked();
      co_return;
    }
  }
  throw Error(Verdict::kConflict,
              fmt::format("node {}: other clients keep locking it while it is removed", id()));
}

// False: try again, with `below` and the version as they are now.
Task<bool> LockedNode::TryRemove(std::vector<std::string>& below) {
  if (!tree().IsHeld(lock())) {
    throw Error(Verdict::kLostSession,
                fmt::format("node {}: the session in which it was locked is over", id()));
  }
  zk::Client& client = tree().client();
  std::vector<zk::Op> ops = DeletionOf(stored(), below, tree().Now());
  zk::MultiResult removed = co_await client.Multi(std::move(ops));
  if (removed.ok()) co_return true;
  // Deleted, or newer than the version read, or contenders have come or left.
  zk::Result<zk::Stat> now = co_await client.Exists(paths::Node(id()));
  if (!now) co_return true;
  stored().revision = RevisionOf(*now);
  below = co_await ZnodesBelow(client, id());
  bool is_ours = below.empty() || std::ranges::find(below, lock().path) != below.end();
  if (!is_ours) throw Error(Verdict::kLostSession, fmt::format("node {}: the lock is gone", id()));
  co_return false;
}

using Write = Transaction<StoredRequest>;

Task<bool> LockedRequest::UpdateAndUnlock(std::function<Change(NodeRequest&)> change) {
  Write write(tree(), stored(), std::move(change));
  write.GiveLock(lock());
  Write::Result result = co_await write.Run();
  if (result == Write::Result::kDone) {
    SetUnlocked();
    co_return true;
  }
  co_await Unlock();
  co_return false;
}

Task<bool> LockedRequest::Fulfil(std::vector<LockedNode*> nodes, std::function<Change(NodeRequest&)> change) {
  std::vector<std::string> contenders;
  for (const LockedNode* node : nodes) {
    if (!node->is_held()) {
      throw Error(Verdict::kLostSession,
                  fmt::format("node {}: the session in which it was locked is over", node->id()));
    }
    contenders.push_back(node->lock().path);
  }
  Write write(tree(), stored(), std::move(change));
  write.AlsoUnlock(std::move(contenders));
  write.GiveLock(lock());
  Write::Result result = co_await write.Run();
  if (result == Write::Result::kRefused) {
    throw Error(Verdict::kConflict, fmt::format("request {}: the lock {} of one of its nodes is gone", id(),
                                                write.failed_path()));
  }
  if (result != Write::Result::kDone) co_return false;
  for (LockedNode* node : nodes) node->SetUnlocked();
  SetUnlocked();
  co_return true;
}

}  // namespace nodepool::store
