#include "store/leases.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/node_request.h"
#include "store/record_kinds.h"
#include "store/transaction.h"

namespace nodepool::store {

namespace {

using Kind = zk::ReadOp::Kind;

std::optional<StoredNode> NodeIn(const NodeId& id, const zk::ReadResult& read, WallTime now) {
  if (read.code != zk::Code::kOk) return std::nullopt;
  Expected<Node> record = ParseNode(read.node.data, now);
  if (!record) return std::nullopt;
  StoredNode node;
  node.id = id;
  node.record = std::move(*record);
  node.revision = RevisionOf(read.node.stat);
  return node;
}

// A contender that is gone in the meantime is left out.
void FillIdentifiers(std::vector<LockedView>& views, const std::vector<zk::ReadResult>& read) {
  std::size_t next = 0;
  for (LockedView& view : views) {
    for (LockedView::Contender& contender : view.contenders) {
      const zk::ReadResult& result = read[next++];
      if (result.code != zk::Code::kOk) contender.path.clear();
      contender.identifier = result.node.data;
    }
    std::erase_if(view.contenders, [](const auto& contender) { return contender.path.empty(); });
  }
}

}  // namespace

Task<std::vector<LockedView>> ReadLockedViews(Tree& tree, std::vector<NodeId> ids) {
  std::vector<zk::ReadOp> reads;
  for (const NodeId& id : ids) {
    reads.push_back({Kind::kData, paths::Node(id)});
    reads.push_back({Kind::kChildren, paths::NodeLock(id)});
  }
  std::vector<zk::ReadResult> nodes = co_await tree.client().ReadMany(std::move(reads));
  std::vector<LockedView> views(ids.size());
  std::vector<zk::ReadOp> contenders;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    zk::ReadResult& directory = nodes[2 * i + 1];
    views[i].id = ids[i];
    views[i].node = NodeIn(ids[i], nodes[2 * i], tree.Now());
    views[i].has_directory = directory.code == zk::Code::kOk;
    for (const std::string& name : zk::SortedContenders(std::move(directory.names))) {
      views[i].contenders.push_back({paths::NodeLock(ids[i]) + "/" + name, ""});
      contenders.push_back({Kind::kData, views[i].contenders.back().path});
    }
  }
  if (contenders.empty()) co_return views;
  std::vector<zk::ReadResult> identifiers = co_await tree.client().ReadMany(std::move(contenders));
  FillIdentifiers(views, identifiers);
  co_return views;
}

void AppendTake(std::vector<zk::Op>& ops, const LockedView& view, const std::string& owner, const Node& next,
                Random& random) {
  std::string directory = paths::NodeLock(view.id);
  if (!view.has_directory) ops.emplace_back(zk::CreateOp{directory, "", zk::CreateMode::kPersistent});
  ops.emplace_back(zk::CreateOp{directory + "/" + zk::ContenderPrefix(random), owner,
                                zk::CreateMode::kPersistentSequential});
  ops.emplace_back(zk::SetOp{paths::Node(view.id), ToJson(next), view.node->revision.version});
}

void AppendRelease(std::vector<zk::Op>& ops, const LockedView& view, const std::string& owner,
                   const std::function<Change(Node&)>& change) {
  if (view.is_locked_by(owner) && view.node) {
    Node next = view.node->record;
    if (change(next) == Change::kWrite)
      ops.emplace_back(zk::SetOp{paths::Node(view.id), ToJson(next), view.node->revision.version});
  }
  for (const LockedView::Contender& contender : view.contenders) {
    if (contender.identifier == owner) ops.emplace_back(zk::DeleteOp{contender.path, -1});
  }
}

namespace {

constexpr int kLeaseAttempts = 10;  // while other processes write

// The request of a lease, as read for a transaction.
Task<std::optional<StoredRequest>> ReadRequest(Tree& tree, RequestId id) {
  if (id.empty()) co_return std::nullopt;
  std::optional<StoredRequest> request = co_await ReadRecord<StoredRequest>(tree, std::move(id));
  co_return request;
}

void AppendDeletion(std::vector<zk::Op>& ops, const std::optional<StoredRequest>& request) {
  if (request) ops.emplace_back(zk::DeleteOp{paths::Request(request->id), request->revision.version});
}

bool IsLostTo(const LockedView& view, const std::string& owner) {
  return !view.node || view.node->record.state != NodeState::kInUse || !view.is_locked_by(owner);
}

}  // namespace

Task<bool> Leases::Create(LeaseId id, Lease lease, NodeRequest request, std::string precedence) {
  lease.state = LeaseState::kWaiting;
  std::string data = ToJson(lease);
  bool may_exist = false;
  auto attempt = [&] { return CreateOnce(id, data, request, precedence, std::exchange(may_exist, true)); };
  std::optional<RequestId> created = co_await tree_.Repeat<std::optional<RequestId>>(attempt);
  if (!created) co_return false;
  if (created->empty()) co_return true;  // the keeper finds the request
  auto note = [request_id = *created](Lease& newest) {
    if (!newest.request.empty() || newest.state != LeaseState::kWaiting) return Change::kSkip;
    newest.request = request_id;
    return Change::kWrite;
  };
  co_await Update(id, note);
  co_return true;
}

// The id of the request, empty if it is not known since an answer was lost. nullopt: the lease exists.
Task<std::optional<RequestId>> Leases::CreateOnce(LeaseId id, std::string data, NodeRequest request,
                                                  std::string precedence, bool may_exist) {
  std::string path = paths::Lease(id);
  if (may_exist) {
    // The server that answers now may be behind the one that carried it out.
    co_await tree_.client().Sync(path);
    zk::Result<zk::NodeData> found = co_await tree_.client().Get(path);
    if (found && found->data == data) co_return RequestId();
  }
  std::vector<zk::Op> ops;
  ops.emplace_back(zk::CreateOp{path, data, zk::CreateMode::kPersistent});
  ops.emplace_back(zk::CreateOp{fmt::format("{}/{}-", paths::kRequests, precedence), ToJson(request),
                                zk::CreateMode::kPersistentSequential});
  zk::MultiResult result = co_await tree_.client().Multi(ops);
  if (!result.ok() && result.code() == zk::Code::kNoNode) {
    co_await zk::EnsurePath(tree_.client(), std::string(paths::kLeases));
    co_await zk::EnsurePath(tree_.client(), std::string(paths::kRequests));
    result = co_await tree_.client().Multi(std::move(ops));
  }
  if (result.ok()) co_return RequestId(zk::BaseName(result.results[1].path));
  if (result.code() == zk::Code::kNodeExists) co_return std::nullopt;
  throw Error(Verdict::kFail, fmt::format("creating {}: {}", path, zk::ToString(result.code())));
}

Task<std::optional<StoredLease>> Leases::Read(LeaseId id) {
  return ReadRecord<StoredLease>(tree_, std::move(id));
}

Task<bool> Leases::Commit(LeaseId id, Plan plan) {
  auto attempt = [&] { return CommitOnce(id, plan); };
  co_return co_await tree_.Repeat<bool>(attempt);
}

Task<bool> Leases::CommitOnce(LeaseId id, const Plan& plan) {
  std::string path = paths::Lease(id);
  for (int i = 0; i < kLeaseAttempts; ++i) {
    std::optional<StoredLease> lease = co_await Read(id);
    if (!lease) co_return false;
    std::optional<Write> write = co_await plan(*lease);
    if (!write) co_return false;
    std::int32_t version = lease->revision.version;
    if (write->deletes_lease) {
      write->ops.emplace_back(zk::DeleteOp{path, version});
    } else {
      write->ops.emplace_back(zk::SetOp{path, ToJson(lease->record), version});
    }
    zk::MultiResult result = co_await tree_.client().Multi(std::move(write->ops));
    if (result.ok()) co_return true;
    // So that the next reading shows what has refused this write.
    co_await tree_.client().Sync(path);
  }
  throw Error(Verdict::kConflict, fmt::format("lease {}: other processes keep changing its records", id));
}

Task<bool> Leases::Update(LeaseId id, std::function<Change(Lease&)> change) {
  auto plan = [this, &change](StoredLease& lease) { return PlanUpdate(lease, change); };
  co_return co_await Commit(std::move(id), plan);
}

Task<std::optional<Leases::Write>> Leases::PlanUpdate(StoredLease& lease,
                                                      std::function<Change(Lease&)> change) {
  if (change(lease.record) == Change::kSkip) co_return std::nullopt;
  co_return Write();
}

Task<Leases::Taking> Leases::Take(LeaseId id) {
  Taking taking;
  auto plan = [this, &taking](StoredLease& lease) { return PlanTake(lease, taking); };
  taking.is_taken = co_await Commit(std::move(id), plan);
  co_return taking;
}

Task<std::optional<Leases::Write>> Leases::PlanTake(StoredLease& lease, Taking& taking) {
  // After a conflict the plan is made again.
  taking = {};
  if (lease.record.state != LeaseState::kWaiting) co_return std::nullopt;
  std::optional<StoredRequest> request = co_await ReadRequest(tree_, lease.record.request);
  if (!request || request->record.state != RequestState::kFulfilled) co_return std::nullopt;
  std::vector<LockedView> views = co_await ReadLockedViews(tree_, request->record.nodes);
  Write write;
  WallTime now = tree_.Now();
  for (const LockedView& view : views) {
    bool is_ours = view.node && view.node->record.allocated_to == request->id &&
                   view.node->record.state == NodeState::kReady;
    if (!is_ours) {
      taking.obstacle = fmt::format("node {} was taken away before it could be handed over", view.id);
      co_return std::nullopt;
    }
    if (!view.contenders.empty()) {
      taking.obstacle = fmt::format("node {} is locked by another process", view.id);
      taking.may_pass = true;
      co_return std::nullopt;
    }
    Node next = view.node->record;
    PutInUse(next, lease.id, lease.record, now);
    AppendTake(write.ops, view, OwnerText(lease.id), next, tree_.random());
  }
  AppendDeletion(write.ops, request);
  lease.record.state = LeaseState::kHeld;
  lease.record.nodes = request->record.nodes;
  lease.record.request = RequestId();
  co_return write;
}

Task<bool> Leases::FailUnserved(LeaseId id) {
  auto plan = [this](StoredLease& lease) { return PlanFailUnserved(lease); };
  co_return co_await Commit(std::move(id), plan);
}

Task<std::optional<Leases::Write>> Leases::PlanFailUnserved(StoredLease& lease) {
  if (lease.record.state != LeaseState::kWaiting) co_return std::nullopt;
  std::optional<StoredRequest> request = co_await ReadRequest(tree_, lease.record.request);
  if (request && request->record.state != RequestState::kFailed) co_return std::nullopt;
  std::string why = request ? WhyFailed(request->record) : "its request was deleted before it was served";
  co_return co_await PlanFail(lease, std::move(why));
}

Task<bool> Leases::Fail(LeaseId id, std::string why) {
  auto plan = [this, &why](StoredLease& lease) { return PlanFail(lease, why); };
  co_return co_await Commit(std::move(id), plan);
}

Task<std::optional<Leases::Write>> Leases::PlanFail(StoredLease& lease, std::string why) {
  bool is_over = lease.record.state == LeaseState::kFailed || lease.record.state == LeaseState::kEnding;
  if (is_over) co_return std::nullopt;
  Write write = co_await GiveBack(lease);
  lease.record.state = LeaseState::kFailed;
  lease.record.failure = std::move(why);
  lease.record.request = RequestId();
  lease.record.nodes.clear();
  co_return write;
}

Task<bool> Leases::End(LeaseId id, std::optional<std::int32_t> version) {
  auto plan = [this, version](StoredLease& lease) { return PlanEnd(lease, version); };
  co_return co_await Commit(std::move(id), plan);
}

Task<std::optional<Leases::Write>> Leases::PlanEnd(StoredLease& lease, std::optional<std::int32_t> version) {
  if (version && lease.revision.version != *version) co_return std::nullopt;
  Write write = co_await GiveBack(lease);
  write.deletes_lease = true;
  co_return write;
}

// The deletion of its request, and the release of its nodes.
Task<Leases::Write> Leases::GiveBack(StoredLease& lease) {
  Write write;
  std::optional<StoredRequest> request = co_await ReadRequest(tree_, lease.record.request);
  AppendDeletion(write.ops, request);
  std::vector<LockedView> views = co_await ReadLockedViews(tree_, lease.record.nodes);
  for (const LockedView& view : views) AppendRelease(write.ops, view, OwnerText(lease.id), ToUsed());
  co_return write;
}

// Nodes that an operator has set to another state keep it.
std::function<Change(Node&)> Leases::ToUsed() const {
  return [now = tree_.Now()](Node& node) {
    if (node.state != NodeState::kInUse) return Change::kSkip;
    node.SetState(NodeState::kUsed, now);
    return Change::kWrite;
  };
}

Task<std::vector<NodeId>> Leases::DropLostNodes(LeaseId id) {
  std::vector<NodeId> dropped;
  auto plan = [this, &dropped](StoredLease& lease) { return PlanDrop(lease, dropped); };
  bool is_done = co_await Commit(std::move(id), plan);
  if (!is_done) dropped.clear();
  co_return dropped;
}

Task<std::optional<Leases::Write>> Leases::PlanDrop(StoredLease& lease, std::vector<NodeId>& dropped) {
  dropped.clear();
  if (lease.record.state != LeaseState::kHeld) co_return std::nullopt;
  std::string owner = OwnerText(lease.id);
  std::vector<LockedView> views = co_await ReadLockedViews(tree_, lease.record.nodes);
  Write write;
  for (const LockedView& view : views) {
    if (!IsLostTo(view, owner)) continue;
    AppendRelease(write.ops, view, owner, ToUsed());
    std::erase(lease.record.nodes, view.id);
    dropped.push_back(view.id);
  }
  if (dropped.empty()) co_return std::nullopt;
  co_return write;
}

Task<bool> Leases::HoldNode(LeaseId id, NodeId node, std::string comment,
                            std::optional<std::int64_t> seconds) {
  auto change = [now = tree_.Now(), comment, seconds](Node& record) {
    record.SetState(NodeState::kHold, now);
    MarkHeld(record);
    record.comment = comment;
    record.hold_expiration = seconds;
    return Change::kWrite;
  };
  auto plan = [this, &node, &change](StoredLease& lease) { return PlanHold(lease, node, change); };
  bool is_done = co_await Commit(id, plan);
  if (is_done) co_return true;
  std::optional<StoredNode> now_held = co_await ReadRecord<StoredNode>(tree_, node);
  co_return now_held && now_held->record.state == NodeState::kHold && now_held->record.comment == comment;
}

Task<std::optional<Leases::Write>> Leases::PlanHold(StoredLease& lease, NodeId node,
                                                    std::function<Change(Node&)> change) {
  std::string owner = OwnerText(lease.id);
  if (lease.record.state != LeaseState::kHeld || !lease.record.has_node(node)) co_return std::nullopt;
  std::vector<NodeId> ids = {node};
  std::vector<LockedView> views = co_await ReadLockedViews(tree_, std::move(ids));
  if (IsLostTo(views.front(), owner)) co_return std::nullopt;
  Write write;
  AppendRelease(write.ops, views.front(), owner, change);
  std::erase(lease.record.nodes, node);
  co_return write;
}

Task<bool> Leases::FreeOrphan(NodeId node, LeaseId id) {
  auto attempt = [&] { return TryFreeOrphan(node, id); };
  co_return co_await tree_.Repeat<bool>(attempt);
}

// Reads the node first: when a lease takes it, both are written at once.
Task<bool> Leases::TryFreeOrphan(NodeId node, LeaseId id) {
  std::string owner = OwnerText(id);
  std::vector<NodeId> ids = {node};
  std::vector<LockedView> views = co_await ReadLockedViews(tree_, std::move(ids));
  bool has_node = co_await HasNode(id, node);
  if (has_node) co_return false;
  std::vector<zk::Op> ops;
  AppendRelease(ops, views.front(), owner, ToUsed());
  if (ops.empty()) co_return false;
  zk::MultiResult result = co_await tree_.client().Multi(std::move(ops));
  co_return result.ok();  // else another process was faster; the next sweep reads it again
}

// True as well for a lease that cannot be read: an operator has to decide.
Task<bool> Leases::HasNode(LeaseId id, NodeId node) {
  Outcome<std::optional<StoredLease>> lease = co_await Attempt(Read(id));
  if (FailedWith(lease, Verdict::kInvalid)) co_return true;
  if (!lease) lease.error().Rethrow();
  co_return *lease && (*lease)->record.has_node(node);
}

Task<bool> Leases::DeleteOrphan(RequestId request, LeaseId id) {
  zk::Result<zk::NodeData> lease = co_await tree_.Get(paths::Lease(id));
  if (lease) co_return false;
  co_await tree_.Delete(paths::Request(request));
  co_return true;
}

zk::Election Leases::Election(std::string identifier) {
  return tree_.Election(fmt::format("{}/leases", paths::kElections), std::move(identifier));
}

}  // namespace nodepool::store
