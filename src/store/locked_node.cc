#include "store/locked_node.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/decode.h"
#include "store/node_deletion.h"

namespace nodepool::store {
namespace {

// How often a removal is tried while other contenders come and leave.
constexpr int kRemovals = 10;

}  // namespace

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

}  // namespace nodepool::store
