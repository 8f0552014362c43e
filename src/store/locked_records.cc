#include "store/locked_records.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/record_kinds.h"
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
  lock().BeginRelease();
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
  for (const LockedNode* node : nodes) node->lock().BeginRelease();
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

namespace {

// Moves the request into the result if it was written; otherwise `locked` retains it.
Task<std::optional<LockedRequest>> KeepIfWritten(std::optional<LockedRequest>& locked,
                                                 std::function<Change(NodeRequest&)> change) {
  if (!locked) co_return std::nullopt;
  bool is_written = co_await locked->Update(std::move(change));
  if (!is_written) co_return std::nullopt;
  LockedRequest written = std::move(*locked);
  locked.reset();
  co_return written;
}

}  // namespace

Task<RequestId> Requests::Create(std::string precedence, NodeRequest request, bool is_ephemeral) {
  if (!request.event_id) request.event_id = tree_.random().UuidHex();
  std::string path = fmt::format("{}/{}-", paths::kRequests, precedence);
  zk::CreateMode mode =
      is_ephemeral ? zk::CreateMode::kEphemeralSequential : zk::CreateMode::kPersistentSequential;
  std::string created = co_await tree_.CreateSequential(std::move(path), ToJson(request), mode);
  co_return RequestId(zk::BaseName(created));
}

Task<std::optional<StoredRequest>> Requests::Read(RequestId id) {
  return ReadRecord<StoredRequest>(tree_, std::move(id));
}

Task<std::vector<RequestId>> Requests::List() {
  std::vector<RequestId> ids;
  std::vector<std::string> names = co_await tree_.Children(std::string(paths::kRequests));
  for (std::string& name : names) ids.emplace_back(std::move(name));
  std::ranges::sort(ids);
  co_return ids;
}

Task<> Requests::Delete(RequestId id) { return tree_.Delete(paths::Request(id)); }

Task<std::optional<LockedRequest>> Requests::Accept(StoredRequest seen,
                                                    std::function<Change(NodeRequest&)> change) {
  using Take = Transaction<StoredRequest>;
  Take take(tree_, seen, change);
  take.TakeLock();
  Take::Result result = co_await take.Run();
  if (result == Take::Result::kRefused && take.failed_code() == zk::Code::kNoNode) {
    co_await tree_.Ensure(std::string(paths::kRequestLocks));
    result = co_await take.Run();
  }
  if (result == Take::Result::kDone) co_return LockedRequest(tree_, std::move(seen), take.taken());
  if (result != Take::Result::kRefused) co_return std::nullopt;
  Task<std::optional<LockedRequest>> accept = AcceptLockedBefore(seen.id, std::move(change));
  co_return co_await UnlessGone(seen.id, std::move(accept));
}

// The request was locked before: the lock directory exists.
Task<std::optional<LockedRequest>> Requests::AcceptLockedBefore(RequestId id,
                                                                std::function<Change(NodeRequest&)> change) {
  auto write = [change](std::optional<LockedRequest>& locked) { return KeepIfWritten(locked, change); };
  auto unlock = [](std::optional<LockedRequest>& locked) { return locked ? locked->Unlock() : Default<>(); };
  return Bracket(TryLock(std::move(id)), write, unlock);
}

Task<std::optional<LockedRequest>> Requests::TryLock(RequestId id) {
  // The lock directory is not below the request, so it would also be created for a vanished
  // request.
  zk::Result<zk::NodeData> before = co_await tree_.Get(paths::Request(id));
  if (!before) co_return std::nullopt;
  co_await tree_.Ensure(std::string(paths::kRequestLocks));
  Task<std::optional<zk::HeldLock>> acquire = tree_.TryLock(paths::RequestLock(id));
  Task<std::optional<LockedRequest>> lock =
      LockRecord<LockedRequest, StoredRequest>(tree_, id, std::move(acquire));
  co_return co_await UnlessGone(id, std::move(lock));
}

// Awaits `locking`. nullopt as well when the request turns out to be gone; its lock directory is
// then removed, also when the task is cancelled.
Task<std::optional<LockedRequest>> Requests::UnlessGone(RequestId id,
                                                        Task<std::optional<LockedRequest>> locking) {
  auto remove = [this, id](const Failure& failure) { return RemoveLockIfGone(id, failure.verdict()); };
  return IfExists(OnFailure(std::move(locking), std::move(remove)));
}

Task<> Requests::RemoveLockIfGone(RequestId id, Verdict verdict) {
  if (verdict != Verdict::kNotFound) co_return;
  std::vector<RequestId> gone{std::move(id)};
  co_await RemoveLocks(std::move(gone));
}

Task<std::vector<RequestId>> Requests::Gone(std::vector<RequestId> ids) {
  auto attempt = [&] { return TryGone(ids); };
  co_return co_await tree_.Repeat<std::vector<RequestId>>(attempt);
}

Task<std::vector<RequestId>> Requests::TryGone(std::vector<RequestId> ids) {
  std::vector<zk::ReadOp> reads;
  for (const RequestId& id : ids) reads.push_back({zk::ReadOp::Kind::kData, paths::Request(id)});
  std::vector<zk::ReadResult> requests = co_await tree_.client().ReadMany(std::move(reads));
  std::vector<RequestId> gone;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (requests[i].code == zk::Code::kNoNode) gone.push_back(std::move(ids[i]));
  }
  co_return gone;
}

Task<std::vector<RequestId>> Requests::RemoveLocks(std::vector<RequestId> ids) {
  auto attempt = [&] { return TryRemoveLocks(ids); };
  co_return co_await tree_.Repeat<std::vector<RequestId>>(attempt);
}

Task<std::vector<RequestId>> Requests::TryRemoveLocks(std::vector<RequestId> ids) {
  std::vector<RequestId> removed;
  while (!ids.empty()) {
    std::vector<zk::Op> ops;
    for (const RequestId& id : ids) ops.emplace_back(zk::DeleteOp{paths::RequestLock(id), -1});
    zk::MultiResult answer = co_await tree_.client().Multi(std::move(ops));
    if (answer.ok()) {
      removed.insert(removed.end(), ids.begin(), ids.end());
      co_return removed;
    }
    // Another process contends: the last one to leave, or the sweep, removes it.
    auto refused = ids.begin() + answer.failed;
    if (answer.code() == zk::Code::kNoNode) removed.push_back(*refused);
    ids.erase(refused);
  }
  co_return removed;
}

}  // namespace nodepool::store
