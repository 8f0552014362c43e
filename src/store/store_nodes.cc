#include <fmt/format.h>

#include <algorithm>

#include "store/node_deletion.h"
#include "store/read_locked.h"
#include "store/transaction.h"

namespace nodepool::store {
namespace {

// How often a node is created anew when somebody takes the fresh one away.
constexpr int kCreations = 3;

}  // namespace

Task<NodeId> Store::CreateNode(Node node) {
  if (!node.created_time) node.created_time = node.state_time;
  std::string path = fmt::format("{}/", paths::kNodes);
  std::string created =
      co_await CreateSequential(std::move(path), ToJson(node), zk::CreateMode::kPersistentSequential);
  co_return NodeId(zk::BaseName(created));
}

Task<LockedNode> Store::CreateLockedNode(Node node, std::function<Change(Node&)> change) {
  using Take = Transaction<StoredNode>;
  if (!node.created_time) node.created_time = node.state_time;
  for (int i = 0; i < kCreations; ++i) {
    StoredNode created;
    created.id = co_await CreateNode(node);
    created.record = node;
    created.revision.version = 0;
    Take take(loop_, client_, random_, created, change);
    take.TakeLock();
    Take::Outcome outcome = co_await take.Run();
    if (outcome == Take::Outcome::kDone) co_return LockedNode(*this, std::move(created), take.taken());
    // Deleted, or locked by another: then the lost answer of a creation made us
    // find a node that a task of ours with the same wish had created.
  }
  throw Error(Verdict::kConflict, "a new node was taken away several times before it could be locked");
}

Task<std::optional<StoredNode>> Store::ReadNode(NodeId id) {
  zk::Result<zk::NodeData> read = co_await Get(paths::Node(id));
  if (!read) co_return std::nullopt;
  StoredNode node = Decode<StoredNode>(id, *read, loop_.Now());
  co_return node;
}

Task<std::vector<NodeId>> Store::ListNodes() {
  std::vector<NodeId> ids;
  std::vector<std::string> names = co_await Children(std::string(paths::kNodes));
  for (std::string& name : names) ids.emplace_back(std::move(name));
  std::ranges::sort(ids);
  co_return ids;
}

Task<std::optional<LockedNode>> Store::TryLockNode(NodeId id, std::string identifier) {
  std::optional<zk::HeldLock> lock;
  try {
    lock = co_await locker_.TryAcquire(paths::NodeLock(id), std::move(identifier));
  } catch (const Error& error) {
    if (error.verdict() != Verdict::kNotFound) throw;
  }
  if (!lock) co_return std::nullopt;
  co_await StayAwake();
  std::optional<StoredNode> node = co_await ReadLocked<StoredNode>(id, *lock);
  if (!node) co_return std::nullopt;
  co_return LockedNode(*this, std::move(*node), std::move(*lock));
}

Task<std::optional<LockedNode>> Store::LockNode(NodeId id, SteadyTime deadline, std::string identifier) {
  std::optional<zk::HeldLock> lock =
      co_await locker_.Acquire(paths::NodeLock(id), deadline, std::move(identifier));
  if (!lock) co_return std::nullopt;
  co_await StayAwake();
  std::optional<StoredNode> node = co_await ReadLocked<StoredNode>(id, *lock);
  if (!node) throw Error(Verdict::kNotFound, fmt::format("node {} does not exist any more", id));
  co_return LockedNode(*this, std::move(*node), std::move(*lock));
}

Task<std::vector<std::string>> Store::NodeContenders(NodeId id) {
  std::vector<std::string> names = co_await Children(paths::NodeLock(id));
  co_return zk::SortedContenders(std::move(names));
}

Task<bool> Store::RemoveEmptyNode(NodeId id) {
  std::function<Task<bool>()> attempt = [&] { return TryRemoveEmpty(id); };
  bool is_removed = co_await Repeat(loop_, random_, std::move(attempt));
  co_return is_removed;
}

// Deletes in one transaction, so that data written meanwhile keeps the node. False:
// somebody was busy there; the next sweep finds it again.
Task<bool> Store::TryRemoveEmpty(NodeId id) {
  std::string path = paths::Node(id);
  zk::Result<zk::NodeData> node = co_await client_.Get(path);
  if (!node || !node->data.empty()) co_return false;
  std::vector<zk::Op> ops;
  ops.emplace_back(zk::CheckOp{path, node->stat.version});
  std::vector<std::string> below = co_await ZnodesBelow(client_, id);
  for (const std::string& znode : below) ops.emplace_back(zk::DeleteOp{znode, -1});
  ops.emplace_back(zk::DeleteOp{path, -1});
  zk::MultiResult removed = co_await client_.Multi(std::move(ops));
  co_return removed.ok();
}

Task<bool> Store::UpdateUnlockedNode(NodeId id, std::function<Change(Node&)> change) {
  using Write = Transaction<StoredNode>;
  std::optional<StoredNode> node = co_await ReadNode(id);
  if (!node) co_return false;
  Write write(loop_, client_, random_, *node, std::move(change));
  Write::Outcome outcome = co_await write.Run();
  co_return outcome == Write::Outcome::kDone;
}

}  // namespace nodepool::store
