#include "launcher/cleaners/deleted_node_worker.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/deadline.h"
#include "async/task.h"
#include "base/error.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "launcher/context.h"
#include "launcher/stats/stats_metrics.h"
#include "sched/nodes/node_life.h"

namespace nodepool::launcher {

using store::Change;

Task<std::optional<store::LockedNode>> LockUnclaimed(Context& context, NodeId id) {
  if (context.ledger.IsClaimed(id)) co_return std::nullopt;
  NodeClaim claim(context.ledger, id);
  std::optional<store::LockedNode> node = co_await context.store.nodes.TryLock(std::move(id));
  co_return node;
}

Task<> MarkDeleting(Context& context, const ProviderManager& providers, const log::Logger& logger, NodeId id,
                    std::string kind, std::string why, std::function<bool(const Node&)> applies) {
  const store::StoredNode* cached = context.caches.nodes.Find(id);
  if (cached == nullptr || cached->is_locked() || !providers.Manages(cached->record.provider)) co_return;
  auto node = co_await LockUnclaimed(context, id);
  if (!node) co_return;
  WallTime now = context.loop.Now();
  auto mark = [now, applies](Node& record) {
    if (!applies(record)) return store::Change::kSkip;
    record.SetState(NodeState::kDeleting, now);
    return store::Change::kWrite;
  };
  bool is_marked = co_await node->Update(mark);
  co_await node->Unlock();
  if (!is_marked) co_return;
  context.metrics.Add(stats::kCleaned, {kind});
  logger.About(log::OfNode(id)).Info("Node will be deleted: {}", why);
}

namespace {

bool IsUnlockedAndAllocated(const store::StoredNode& node) {
  return !node.is_locked() && node.record.state == NodeState::kReady && !node.record.allocated_to.empty();
}

// Whether an unlocked node that is allocated to this request is abandoned: the request is gone, or was
// finished without the node.
bool IsAbandonedBy(const store::StoredRequest* request) {
  return request == nullptr || request->record.state == RequestState::kRequested ||
         request->record.state == RequestState::kPending;
}

}  // namespace

DeletedNodeWorker::DeletedNodeWorker(Context& context, ProviderManager& providers)
    : context_(context),
      providers_(providers),
      logger_("nodepool.DeletedNodeWorker"),
      works_(context.loop, context.random, logger_,
             {.failure = [](const NodeId&) { return "Deleting failed, will be tried again"; },
              .ids_of = [](const NodeId& id) { return log::OfNode(id); },
              .pauses = {context.intervals.delete_retry, context.intervals.delete_retry_max}},
             [this](const NodeId& id) { return WorkFor(id); }),
      loops_(context.loop, logger_) {}

DeletedNodeWorker::~DeletedNodeWorker() = default;

void DeletedNodeWorker::Start() {
  subscriptions_.push_back(context_.caches.nodes.OnChange(
      [this](const NodeId& id, const store::StoredNode*, const store::StoredNode* after) {
        progress_.NotifyAll();
        if (after != nullptr) return Examine(id);
        removed_.erase(id);
      }));
  subscriptions_.push_back(context_.caches.requests.OnChange(
      [this](const RequestId& id, const store::StoredRequest*, const store::StoredRequest* after) {
        if (after != nullptr) return;
        store::FewNodes nodes = context_.caches.nodes.OfRequest(id);
        for (const NodeId& node : nodes) Examine(node);
      }));
  loops_.Spawn("sweep dead nodes", Sweep());
}

Task<> DeletedNodeWorker::ExamineAll() {
  std::vector<NodeId> left;
  for (const auto& [id, node] : context_.caches.nodes.all()) {
    Examine(id);
    if (IsLeft(node)) left.push_back(id);
  }
  if (left.empty()) co_return;
  // In a crowd the cache may show requests as pending that were fulfilled long ago.
  co_await context_.caches.requests.CatchUp();
  for (const NodeId& id : left) {
    const store::StoredNode* node = context_.caches.nodes.Find(id);
    if (node != nullptr && IsLeft(*node)) FreeNode(id);
  }
}

// Not asked at each change: when a request is fulfilled, its nodes are seen unlocked first.
bool DeletedNodeWorker::IsLeft(const store::StoredNode& node) const {
  return IsUnlockedAndAllocated(node) && context_.caches.requests.synced() &&
         IsAbandonedBy(context_.caches.requests.Find(node.record.allocated_to));
}

Task<> DeletedNodeWorker::Sweep() {
  while (true) {
    if (context_.caches.nodes.synced()) {
      Outcome<> examined = co_await Attempt(ExamineAll());
      if (!examined) logger_.Debug("The sweep ended early: {}", examined.error().message());
    }
    co_await context_.loop.SleepFor(context_.intervals.cleanup);
  }
}

Task<> DeletedNodeWorker::Finish() {
  StopAccepting();
  co_await works_.Join();
}

Task<> DeletedNodeWorker::Stop() {
  StopAccepting();
  subscriptions_.clear();
  co_await loops_.Stop();
  co_await works_.Stop();
}

void DeletedNodeWorker::ProviderStarted(const ProviderName& provider) {
  std::set<NodeId> nodes = context_.caches.nodes.OfProvider(provider);
  for (const NodeId& node : nodes) Examine(node);
}

bool DeletedNodeWorker::IsClean(const ProviderName& provider) const {
  auto is_clean = [this](const NodeId& id) {
    const store::StoredNode* node = context_.caches.nodes.Find(id);
    bool is_garbage =
        node->record.state && sched::IsGarbageWhenUnlocked(*node->record.state) && !node->is_locked();
    return !works_.IsUnderWay(id) && !is_garbage;
  };
  const auto& nodes = context_.caches.nodes.OfProvider(provider);
  return std::all_of(nodes.begin(), nodes.end(), is_clean);
}

Task<> DeletedNodeWorker::AwaitClean(ProviderName provider) {
  while (!IsClean(provider)) {
    co_await progress_.Wait();
    // Collect changes and examine them together.
    co_await context_.loop.SleepFor(std::chrono::milliseconds(100));
  }
}

void DeletedNodeWorker::Examine(const NodeId& id) {
  if (!is_ending_) works_.Notice(id);
}

std::optional<DeletedNodeWorker::Works::Work> DeletedNodeWorker::WorkFor(const NodeId& id) {
  const store::StoredNode* node = context_.caches.nodes.Find(id);
  bool is_ours = node != nullptr && !node->is_locked() && node->record.state && !removed_.contains(id) &&
                 providers_.Manages(node->record.provider);
  if (is_ending_ || !is_ours) return std::nullopt;
  if (sched::IsGarbageWhenUnlocked(*node->record.state)) {
    if (providers_.Find(node->record.provider) == nullptr) return std::nullopt;
    return Works::Work{"delete node", ThenNotify(Delete(id))};
  }
  bool is_abandoned = IsUnlockedAndAllocated(*node) && context_.caches.requests.synced() &&
                      context_.caches.requests.Find(node->record.allocated_to) == nullptr;
  if (!is_abandoned) return std::nullopt;
  return Works::Work{"deallocate node", ThenNotify(Deallocate(id))};
}

void DeletedNodeWorker::FreeNode(const NodeId& id) {
  bool is_ours = providers_.Manages(context_.caches.nodes.Find(id)->record.provider);
  if (is_ours && !is_ending_) works_.Do(id, {"deallocate node", ThenNotify(Deallocate(id))});
}

Task<> DeletedNodeWorker::ThenNotify(Task<> task) {
  ScopeExit ended([this] { progress_.NotifyAll(); });
  co_await std::move(task);
}

// A node on which a job failed may be held instead of being deleted (D-67).
Task<> DeletedNodeWorker::HoldIfNoted(store::LockedNode& node, std::optional<HoldNote> note) {
  if (!note || !CanBeHeld(node.record())) co_return;
  WallTime now = context_.loop.Now();
  auto hold = [note, now](Node& record) {
    if (!CanBeHeld(record)) return Change::kSkip;
    Hold(record, *note, now);
    return Change::kWrite;
  };
  bool is_held = co_await node.Update(hold);
  if (is_held) logger_.About(log::OfNode(node.id())).Info("{}", Excerpt(note->comment, 300));
}

// Whether somebody launches the node. `building` is written together with the lock, but the cache may show
// the lock later; to contend for it would keep the request's client from locking the node. A read is cheaper.
Task<bool> DeletedNodeWorker::IsBeingLaunched(NodeId id) {
  const store::StoredNode* cached = context_.caches.nodes.Find(id);
  if (cached == nullptr || cached->record.state != NodeState::kBuilding) co_return false;
  std::vector<std::string> contenders = co_await context_.store.nodes.Contenders(std::move(id));
  co_return !contenders.empty();
}

Task<> DeletedNodeWorker::Delete(NodeId id) {
  bool is_launched = co_await IsBeingLaunched(id);
  if (is_launched) co_return;
  auto locked = co_await context_.store.nodes.TryLockFree(id);
  if (!locked) co_return;
  std::optional<store::LockedNode> node = std::move(locked->node);
  auto unlock = [&node] { return UnlockIfHeld(node); };
  std::optional<Node> removed = co_await WithCleanup(DeleteLocked(node, std::move(locked->note)), unlock);
  if (!removed) co_return;
  context_.metrics.Add(stats::kCleaned, {"deleted_node"});
  if (context_.caches.nodes.Find(id) != nullptr) removed_.insert(id);
  logger_.About(log::OfNode(id)).Info("Deleted");
  if (auto provider = providers_.Find(removed->provider)) provider->NodeDeleted(id, *removed);
}

// Returns the record of the removed node; nullopt: it is not to be deleted, or not now.
Task<std::optional<Node>> DeletedNodeWorker::DeleteLocked(std::optional<store::LockedNode>& node,
                                                          std::optional<HoldNote> note) {
  co_await HoldIfNoted(*node, std::move(note));
  std::optional<Node> removed = node->record();
  bool is_garbage = removed->state && sched::IsGarbageWhenUnlocked(*removed->state);
  std::shared_ptr<driver::Provider> provider = providers_.Find(removed->provider);
  if (!is_garbage || provider == nullptr) co_return std::nullopt;
  logger_.About(log::OfNode(node->id())).Info("Deleting node of provider {}", removed->provider);
  if (removed->state != NodeState::kDeleted) {
    auto show = [&](const Failure&) { return ShowDeletion(*node, Duration(0)); };
    co_await OnFailure(DeleteMachine(*node, *provider), show);
  }
  co_await node->Remove();
  node.reset();
  co_return removed;
}

// The record says `deleting` when that takes longer than a moment or fails. What is gone at once needs no
// such write; if this process dies meanwhile, the record's state is one that is deleted as well.
Task<> DeletedNodeWorker::DeleteMachine(store::LockedNode& node, driver::Provider& provider) {
  Node record = node.record();
  record.SetState(NodeState::kDeleting, context_.loop.Now());
  TaskGroup showing(context_.loop, logger_);
  showing.Spawn("show the deletion", log::OfNode(node.id()),
                ShowDeletion(node, context_.intervals.quick_delete));
  SteadyTime deadline = context_.loop.SteadyNow() + context_.intervals.delete_timeout;
  Task<> deletion =
      WithDeadline(context_.loop, deadline, "deletion", provider.DeleteResources(node.id(), record));
  auto stop = [&showing] { return showing.Stop(); };
  co_await WithCleanup(std::move(deletion), stop);
}

// A failure is left to the deletion, which needs the lock as well.
Task<> DeletedNodeWorker::ShowDeletion(store::LockedNode& node, Duration after) {
  co_await context_.loop.SleepFor(after);
  WallTime now = context_.loop.Now();
  auto mark = [now](Node& record) {
    if (record.state == NodeState::kDeleting) return Change::kSkip;
    record.SetState(NodeState::kDeleting, now);
    return Change::kWrite;
  };
  co_await Attempt(node.Update(mark));
}

Task<> DeletedNodeWorker::Deallocate(NodeId id) {
  const store::StoredNode* cached = context_.caches.nodes.Find(id);
  if (cached == nullptr) co_return;
  RequestId request = cached->record.allocated_to;
  ProviderName provider = cached->record.provider;
  if (context_.ledger.IsClaimed(id)) co_return;
  // The caches may lag behind another launcher that has served the request, and behind a consumer that
  // already has the node, or is done with it. A read is cheaper than a lock.
  auto seen = co_await context_.store.nodes.Read(id);
  bool is_left = seen && seen->record.state == NodeState::kReady && seen->record.allocated_to == request;
  if (!is_left) co_return;
  auto found = co_await context_.store.requests.Read(request);
  if (!IsAbandonedBy(found ? &*found : nullptr)) co_return;
  // Lock first: the launcher that fulfils the request gives the lock up with that.
  auto node = co_await LockUnclaimed(context_, id);
  context_.ledger.CapacityChanged(provider);
  if (!node) co_return;
  auto unlock = [&node] { return UnlockIfHeld(node); };
  co_await WithCleanup(FreeIfLeft(*node, request), unlock);
}

Task<> DeletedNodeWorker::FreeIfLeft(store::LockedNode& node, RequestId request) {
  auto deallocate = [request](Node& record) {
    if (record.state != NodeState::kReady || record.allocated_to != request) return Change::kSkip;
    record.Free();
    return Change::kWrite;
  };
  auto found = co_await context_.store.requests.Read(request);
  if (!IsAbandonedBy(found ? &*found : nullptr)) co_return;
  bool is_freed = co_await node.Update(deallocate);
  if (!is_freed) co_return;
  context_.metrics.Add(stats::kCleaned, {"deallocated_node"});
  logger_.About({"", request.value, node.id().value})
      .Info("The request {}; the ready node is free again", found ? "does not have it" : "is gone");
}

DrainWorker::DrainWorker(Context& context, const ProviderManager& providers)
    : context_(context),
      providers_(providers),
      logger_("nodepool.CleanupWorker"),
      tasks_(context.loop, logger_) {}

DrainWorker::~DrainWorker() = default;

void DrainWorker::Start() {
  subscriptions_.push_back(
      context_.caches.nodes.OnChange([this](const NodeId& id, const store::StoredNode*,
                                            const store::StoredNode* after) { NodeChanged(id, after); }));
  subscriptions_.push_back(
      context_.caches.pauses.OnChange([this](const ProviderName& provider, const ProviderPause*,
                                             const ProviderPause*) { AddNodesOf(provider); }));
  tasks_.Spawn("drain providers", Run());
}

Task<> DrainWorker::Stop() {
  subscriptions_.clear();
  co_await tasks_.Stop();
}

bool DrainWorker::IsDrained(const ProviderName& provider) const {
  const ProviderPause* pause = context_.caches.pauses.Find(provider);
  if (pause == nullptr || !pause->is_drained) return false;
  std::shared_ptr<driver::Provider> running = providers_.Find(provider);
  return running && running->launches_nodes();
}

void DrainWorker::NodeChanged(const NodeId& id, const store::StoredNode* node) {
  bool is_due =
      node != nullptr && node->record.is_free() && !node->is_locked() && IsDrained(node->record.provider);
  if (!is_due) return;
  due_.insert(id);
  changed_.Set();
}

void DrainWorker::AddNodesOf(const ProviderName& provider) {
  if (!IsDrained(provider)) return;
  for (const NodeId& id : context_.caches.nodes.OfProvider(provider))
    NodeChanged(id, context_.caches.nodes.Find(id));
}

// For what no event announces: the provider has started, or a deletion has failed.
void DrainWorker::Sweep() {
  for (const auto& [provider, pause] : context_.caches.pauses.all()) AddNodesOf(provider);
}

Task<> DrainWorker::Run() {
  while (true) {
    if (context_.caches.synced()) Sweep();
    SteadyTime next_sweep = context_.loop.SteadyNow() + context_.intervals.cleanup;
    while (context_.loop.SteadyNow() < next_sweep) {
      changed_.Reset();
      while (!due_.empty()) {
        NodeId id = due_.extract(due_.begin()).value();
        Outcome<> deleted = co_await Attempt(Delete(id));
        if (!deleted)
          logger_.About(log::OfNode(id))
              .Warning("The unused node could not be marked, trying again: {}", deleted.error().message());
      }
      co_await EndsBy(context_.loop, next_sweep, "nodes to drain", changed_.Wait());
    }
  }
}

Task<> DrainWorker::Delete(NodeId id) {
  const store::StoredNode* node = context_.caches.nodes.Find(id);
  if (node == nullptr || !IsDrained(node->record.provider)) co_return;
  auto applies = [this](const Node& record) { return record.is_free() && IsDrained(record.provider); };
  co_await MarkDeleting(context_, providers_, logger_, id, "drained", "its provider is drained", applies);
}

}  // namespace nodepool::launcher
