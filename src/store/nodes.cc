#include "store/nodes.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/decode.h"
#include "store/lock_record.h"
#include "store/node_deletion.h"
#include "store/transaction.h"

namespace nodepool::store {
namespace {

// How often a node is created again when another client locks or deletes the new one.
constexpr int kCreations = 3;
constexpr int kAttempts = 5;  // while other clients write

// The node that was read under the lock, which is moved into the result.
Task<std::optional<Nodes::LockedWithNote>> TakeOver(Tree& tree, NodeId id,
                                                    std::optional<zk::Locker::Acquired>& acquired) {
  const zk::ReadResult& record = acquired->reads.at(0);
  const zk::ReadResult& note = acquired->reads.at(1);
  if (record.code != zk::Code::kOk) {
    throw Error(Verdict::kNotFound, fmt::format("node {} does not exist any more", id));
  }
  StoredNode stored = Decode<StoredNode>(id, record.node, tree.Now());
  Nodes::LockedWithNote result;
  if (note.code == zk::Code::kOk) {
    Expected<HoldNote> parsed = ParseHoldNote(note.node.data);
    if (parsed) result.note = std::move(*parsed);  // JobCache reports others
  }
  result.node = LockedNode(tree, std::move(stored), std::move(acquired->lock));
  acquired.reset();
  co_return result;
}

}  // namespace

Task<NodeId> Nodes::Create(Node node) {
  if (!node.created_time) node.created_time = node.state_time;
  std::string path = fmt::format("{}/", paths::kNodes);
  std::string created =
      co_await tree_.CreateSequential(std::move(path), ToJson(node), zk::CreateMode::kPersistentSequential);
  co_return NodeId(zk::BaseName(created));
}

Task<LockedNode> Nodes::CreateLocked(Node node, std::function<Change(Node&)> change) {
  using Take = Transaction<StoredNode>;
  if (!node.created_time) node.created_time = node.state_time;
  for (int i = 0; i < kCreations; ++i) {
    StoredNode created;
    created.id = co_await Create(node);
    created.record = node;
    created.revision.version = 0;
    Take take(tree_, created, change);
    take.TakeLock();
    Take::Result result = co_await take.Run();
    if (result == Take::Result::kDone) co_return LockedNode(tree_, std::move(created), take.taken());
    // Deleted, or locked by another: then after a lost answer we found a node that another task of
    // this process had created with the same data.
  }
  throw Error(Verdict::kConflict, "a new node was taken away several times before it could be locked");
}

Task<std::optional<StoredNode>> Nodes::Read(NodeId id) {
  return ReadRecord<StoredNode>(tree_, std::move(id));
}

Task<std::vector<NodeId>> Nodes::List() {
  std::vector<NodeId> ids;
  std::vector<std::string> names = co_await tree_.Children(std::string(paths::kNodes));
  for (std::string& name : names) ids.emplace_back(std::move(name));
  std::ranges::sort(ids);
  co_return ids;
}

Task<std::optional<LockedNode>> Nodes::TryLock(NodeId id, std::string identifier) {
  Task<std::optional<zk::HeldLock>> acquire = tree_.TryLock(paths::NodeLock(id), std::move(identifier));
  return IfExists(LockRecord<LockedNode, StoredNode>(tree_, id, std::move(acquire)));
}

Task<std::optional<Nodes::LockedWithNote>> Nodes::TryLockFree(NodeId id) {
  return IfExists(LockFree(std::move(id)));
}

Task<std::optional<Nodes::LockedWithNote>> Nodes::LockFree(NodeId id) {
  using Acquired = std::optional<zk::Locker::Acquired>;
  std::vector<zk::ReadOp> reads{{zk::ReadOp::Kind::kData, paths::Node(id)},
                                {zk::ReadOp::Kind::kData, paths::HoldNote(id)}};
  auto take_over = [this, id](Acquired& acquired) {
    return acquired ? TakeOver(tree_, id, acquired) : Default<std::optional<LockedWithNote>>();
  };
  auto unlock = [this](Acquired& acquired) { return acquired ? tree_.Unlock(acquired->lock) : Default<>(); };
  return Bracket(tree_.TryLockFree(paths::NodeLock(id), std::move(reads)), take_over, unlock);
}

Task<std::optional<LockedNode>> Nodes::Lock(NodeId id, SteadyTime deadline, std::string identifier) {
  Task<std::optional<zk::HeldLock>> acquire =
      tree_.Lock(paths::NodeLock(id), deadline, std::move(identifier));
  return LockRecord<LockedNode, StoredNode>(tree_, id, std::move(acquire));
}

Task<std::vector<std::string>> Nodes::Contenders(NodeId id) {
  std::vector<std::string> names = co_await tree_.Children(paths::NodeLock(id));
  co_return zk::SortedContenders(std::move(names));
}

Task<bool> Nodes::RemoveEmpty(NodeId id) {
  auto attempt = [&] { return TryRemoveEmpty(id); };
  co_return co_await tree_.Repeat<bool>(attempt);
}

// Deletes in one transaction, so that a node with data written meanwhile is not deleted. False:
// another process used it; the next sweep finds it again.
Task<bool> Nodes::TryRemoveEmpty(NodeId id) {
  zk::Client& client = tree_.client();
  std::string path = paths::Node(id);
  zk::Result<zk::NodeData> node = co_await client.Get(path);
  if (!node || !node->data.empty()) co_return false;
  std::vector<zk::Op> ops;
  ops.emplace_back(zk::CheckOp{path, node->stat.version});
  std::vector<std::string> below = co_await ZnodesBelow(client, id);
  for (const std::string& znode : below) ops.emplace_back(zk::DeleteOp{znode, -1});
  ops.emplace_back(zk::DeleteOp{path, -1});
  zk::MultiResult removed = co_await client.Multi(std::move(ops));
  co_return removed.ok();
}

Task<bool> Nodes::UpdateUnlocked(NodeId id, std::function<Change(Node&)> change) {
  using Write = Transaction<StoredNode>;
  std::optional<StoredNode> node = co_await Read(std::move(id));
  if (!node) co_return false;
  Write write(tree_, *node, std::move(change));
  Write::Result result = co_await write.Run();
  co_return result == Write::Result::kDone;
}

// --- Who has a node ---------------------------------------------------------

Task<std::optional<Nodes::Contender>> Nodes::FirstContender(NodeId id) {
  std::vector<std::string> names = co_await Contenders(id);
  if (names.empty()) co_return std::nullopt;
  std::string path = paths::NodeLock(id) + "/" + names.front();
  zk::Result<zk::NodeData> read = co_await tree_.Get(path);
  if (!read) co_return std::nullopt;
  co_return Contender{path, read->data};
}

Task<std::optional<std::string>> Nodes::Owner(NodeId id) {
  std::optional<Contender> first = co_await FirstContender(std::move(id));
  if (!first) co_return std::nullopt;
  co_return first->identifier;
}

Task<bool> Nodes::Claim(NodeId id, std::string owner, std::function<Change(Node&)> change,
                        RequestId request) {
  auto attempt = [&] { return TryClaim(id, owner, change, request); };
  co_return co_await tree_.Repeat<bool>(attempt);
}

Task<bool> Nodes::Release(NodeId id, std::string owner, std::function<Change(Node&)> change) {
  std::string given_up;  // the contender that an attempt may have removed
  auto attempt = [&] { return TryRelease(id, owner, change, given_up); };
  co_return co_await tree_.Repeat<bool>(attempt);
}

// A lock of this owner that exists already is that of an attempt whose answer was lost, or of a
// program that died before it wrote the node.
Task<bool> Nodes::TryClaim(NodeId id, std::string owner, std::function<Change(Node&)> change,
                           RequestId request) {
  zk::Client& client = tree_.client();
  for (int i = 0; i < kAttempts; ++i) {
    std::string directory = paths::NodeLock(id);
    std::optional<StoredNode> node = co_await Read(id);
    if (!node) co_return false;
    zk::Result<zk::Children> children = co_await client.GetChildren(directory);
    std::optional<Contender> first = co_await FirstContender(id);
    if (first && first->identifier != owner) co_return false;
    if (change(node->record) == Change::kSkip) co_return first.has_value();
    std::vector<zk::Op> ops;
    if (!children) ops.emplace_back(zk::CreateOp{directory, "", zk::CreateMode::kPersistent});
    if (!first) {
      ops.emplace_back(zk::CreateOp{directory + "/" + zk::ContenderPrefix(tree_.random()), owner,
                                    zk::CreateMode::kPersistentSequential});
    }
    ops.emplace_back(zk::SetOp{paths::Node(id), ToJson(node->record), node->revision.version});
    zk::Result<zk::Stat> is_requested = co_await client.Exists(paths::Request(request));
    if (is_requested) ops.emplace_back(zk::DeleteOp{paths::Request(request), -1});
    if (!is_requested && !first) co_return false;  // the sweep finds the node without a request and frees it
    zk::MultiResult result = co_await client.Multi(std::move(ops));
    if (result.ok()) co_return true;
  }
  co_return false;
}

Task<bool> Nodes::TryRelease(NodeId id, std::string owner, std::function<Change(Node&)> change,
                             std::string& given_up) {
  zk::Client& client = tree_.client();
  for (int i = 0; i < kAttempts; ++i) {
    if (!given_up.empty()) {
      co_await client.Sync(given_up);
      zk::Result<zk::Stat> is_there = co_await client.Exists(given_up);
      if (!is_there) co_return true;
    }
    std::optional<StoredNode> node = co_await Read(id);
    if (!node) co_return false;
    std::optional<Contender> first = co_await FirstContender(id);
    if (!first || first->identifier != owner) co_return false;
    if (change(node->record) == Change::kSkip) co_return false;
    std::vector<zk::Op> ops;
    ops.emplace_back(zk::SetOp{paths::Node(id), ToJson(node->record), node->revision.version});
    ops.emplace_back(zk::DeleteOp{first->path, -1});
    given_up = first->path;
    zk::MultiResult result = co_await client.Multi(std::move(ops));
    if (result.ok()) co_return true;
  }
  co_return false;
}

}  // namespace nodepool::store
