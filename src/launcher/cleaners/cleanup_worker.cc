#include "launcher/cleaners/cleanup_worker.h"

#include <algorithm>
#include <utility>

#include "async/deadline.h"
#include "async/task.h"
#include "base/scope_exit.h"
#include "launcher/cleaners/deleted_node_worker.h"
#include "launcher/context.h"
#include "launcher/stats/stats_metrics.h"
#include "model/image.h"
#include "sched/nodes/node_life.h"

namespace nodepool::launcher {

using store::Change;

CleanupWorker::CleanupWorker(Context& context, ProviderManager& providers)
    : context_(context),
      providers_(providers),
      logger_("nodepool.CleanupWorker"),
      tasks_(context.loop, logger_) {}

CleanupWorker::~CleanupWorker() = default;

void CleanupWorker::Start() { tasks_.Spawn("clean up", Run()); }

Task<> CleanupWorker::Stop() { return tasks_.Stop(); }

Task<> CleanupWorker::Run() {
  while (true) {
    if (context_.caches.nodes.synced() && context_.caches.requests.synced()) co_await Pass();
    co_await context_.loop.SleepFor(context_.intervals.cleanup);
  }
}

Task<> CleanupWorker::Pass() {
  using Step = Task<> (CleanupWorker::*)();
  constexpr Step kSteps[] = {&CleanupWorker::LeakedResources, &CleanupWorker::MaxReadyAge,
                             &CleanupWorker::MaxHoldAge,      &CleanupWorker::UnfinishedNodes,
                             &CleanupWorker::EmptyNodes,      &CleanupWorker::NodesWithoutProvider,
                             &CleanupWorker::ValidationNodes};
  for (Step step : kSteps) {
    Outcome<> done = co_await Attempt((this->*step)());
    if (!done) logger_.Error("A clean-up task failed, the others continue: {}", done.error().message());
  }
}

Task<> CleanupWorker::LeakedResources() {
  std::vector<std::shared_ptr<driver::Provider>> running = providers_.Running();
  for (const std::shared_ptr<driver::Provider>& provider : running) {
    SteadyTime deadline = context_.loop.SteadyNow() + context_.intervals.leak_cleanup_timeout;
    Outcome<> cleaned = co_await Attempt(
        WithDeadline(context_.loop, deadline, "clean-up", provider->CleanupLeakedResources()));
    if (cleaned) continue;
    // That the provider cannot be used was logged.
    log::Level level = HasFault(provider->config().name) ? log::Level::kDebug : log::Level::kError;
    logger_.Write(level, fmt::format("Leaked resources of provider {} could not be cleaned: {}",
                                     provider->config().name, cleaned.error().message()));
  }
}

bool CleanupWorker::HasFault(const ProviderName& provider) const {
  return providers_.Manages(provider) && !providers_.HealthOf(provider).fault.empty();
}

// Marks the nodes in this state of which `applies` is true.
Task<> CleanupWorker::DeleteWhere(NodeState state, std::string kind, std::string why,
                                  std::function<bool(const Node&)> applies) {
  std::vector<NodeId> due;
  for (const NodeId& id : context_.caches.nodes.InState(state)) {
    if (applies(context_.caches.nodes.Find(id)->record)) due.push_back(id);
  }
  for (const NodeId& id : due) co_await MarkDeleting(context_, providers_, logger_, id, kind, why, applies);
}

Task<> CleanupWorker::MaxReadyAge() {
  auto limit_of = [this](const LabelName& label) -> std::optional<Duration> {
    auto config = context_.config->common.labels.find(label);
    return config == context_.config->common.labels.end() ? std::nullopt : config->second.max_ready_age;
  };
  auto applies = [this, limit_of](const Node& node) {
    return sched::IsPastReadyAge(node, limit_of, context_.loop.Now());
  };
  return DeleteWhere(NodeState::kReady, "max_ready_age", "ready for longer than max-ready-age", applies);
}

Task<> CleanupWorker::MaxHoldAge() {
  auto applies = [this](const Node& node) {
    return sched::IsPastHoldAge(node, context_.config->common.max_hold_age, context_.loop.Now());
  };
  return DeleteWhere(NodeState::kHold, "max_hold_age", "its hold has expired", applies);
}

// Of requests that were lost, and freed as others are.
Task<> CleanupWorker::ValidationNodes() {
  auto applies = [](const Node& node) { return node.is_free() && IsForValidation(node); };
  return DeleteWhere(NodeState::kReady, "validation",
                     "it was booted to validate an image, and nobody else may use it", applies);
}

bool CleanupWorker::IsUnfinished(const store::StoredNode& node) const {
  if (node.is_locked()) return false;
  const store::StoredRequest* request = context_.caches.requests.Find(node.record.allocated_to);
  return sched::IsUnfinished(node.record, request == nullptr ? nullptr : &request->record,
                             context_.intervals.init_node_age, context_.loop.Now());
}

Task<> CleanupWorker::UnfinishedNodes() {
  std::vector<NodeId> due;
  for (const NodeId& id : context_.caches.nodes.InState(NodeState::kInit)) {
    if (IsUnfinished(*context_.caches.nodes.Find(id))) due.push_back(id);
  }
  for (const NodeId& id : due) {
    auto applies = [](const Node& node) { return node.state == NodeState::kInit; };
    co_await MarkDeleting(context_, providers_, logger_, id, "unfinished_node",
                          "its launch was never finished", applies);
  }
}

// No program creates a node without data; the store reads it again before it removes it.
Task<> CleanupWorker::EmptyNodes() {
  std::set<NodeId> empty = context_.caches.nodes.empty_nodes();
  for (const NodeId& id : empty) {
    bool is_removed = co_await context_.store.nodes.RemoveEmpty(id);
    if (is_removed) context_.metrics.Add(stats::kCleaned, {"empty_node"});
  }
}

bool CleanupWorker::IsOwnerless(const Node& node) const {
  return sched::IsOwnerless(node, context_.intervals.init_node_age, context_.loop.Now());
}

Task<> CleanupWorker::NodesWithoutProvider() {
  std::vector<NodeId> due;
  for (const NodeId& id : context_.caches.nodes.OfProvider(ProviderName())) {
    const store::StoredNode* node = context_.caches.nodes.Find(id);
    if (!node->is_locked() && IsOwnerless(node->record)) due.push_back(id);
  }
  for (const NodeId& id : due) co_await RemoveIfOwnerless(id);
}

Task<> CleanupWorker::RemoveIfOwnerless(NodeId id) {
  auto node = co_await context_.store.nodes.TryLock(id);
  if (!node) co_return;
  if (!IsOwnerless(node->record())) co_return co_await node->Unlock();
  std::string state(ToString(*node->record().state));
  auto unlock = [&node](const Failure&) { return UnlockIfHeld(node); };
  co_await OnFailure(node->Remove(), unlock);
  context_.metrics.Add(stats::kCleaned, {"unfinished_node"});
  logger_.About(log::OfNode(id)).Info("Removed: it was {} and named no provider that could delete it", state);
}

namespace {

// Of one transaction.
constexpr std::size_t kMaxRemovals = 100;

}  // namespace

LostRequests::LostRequests(Context& context)
    : context_(context),
      logger_("nodepool.CleanupWorker"),
      resets_(
          context.loop, context.random, logger_,
          {.failure = [](const RequestId&) { return "The lost request could not be reset, trying again"; },
           .ids_of = [](const RequestId& id) { return log::OfRequest(id); }},
          [this](const RequestId& id) { return ResetIfLost(id); }),
      removal_(
          context.loop, "locks of served requests", {.settle = context.intervals.request_lock_removal},
          [this] { return RemoveDirectories(); }, logger_),
      removals_(context.loop, logger_),
      loops_(context.loop, logger_) {}

LostRequests::~LostRequests() = default;

void LostRequests::Start() {
  subscriptions_.push_back(context_.caches.requests.OnChange(
      [this](const RequestId& id, const store::StoredRequest*, const store::StoredRequest* after) {
        if (after != nullptr) return resets_.Notice(id);
        RemoveIfServed(id);
      }));
  subscriptions_.push_back(context_.caches.request_locks.OnChange([this](const RequestId& id) {
    resets_.Notice(id);
    RemoveIfServed(id);
  }));
  for (const RequestId& id : context_.caches.requests.InState(RequestState::kPending)) resets_.Notice(id);
  loops_.Spawn("remove request locks", removal_.Run());
  loops_.Spawn("sweep request locks", Sweep());
}

Task<> LostRequests::Stop() {
  subscriptions_.clear();
  co_await loops_.Stop();
  co_await removals_.Stop();
  co_await resets_.Stop();
}

void LostRequests::Served(const RequestId& id) {
  served_.insert(id);
  RemoveIfServed(id);
}

bool LostRequests::IsLost(const RequestId& id) const {
  const store::StoredRequest* request = context_.caches.requests.Find(id);
  return request != nullptr && request->record.state == RequestState::kPending &&
         !context_.caches.request_locks.IsLocked(id);
}

// The end of a lock is seen at once, the record written with it only a read later; so a request is lost only
// if it still looks lost after a grace period.
std::optional<Reconciler<RequestId>::Work> LostRequests::ResetIfLost(const RequestId& id) {
  if (!IsLost(id)) return std::nullopt;
  return Reconciler<RequestId>::Work{"reset lost request", Reset(id), context_.intervals.lost_request_grace};
}

Task<> LostRequests::Reset(RequestId id) {
  // The cache may lag by more than the grace; a read is cheaper than a lock.
  auto found = co_await context_.store.requests.Read(id);
  if (!found || found->record.state != RequestState::kPending) co_return;
  auto request = co_await context_.store.requests.TryLock(id);
  if (!request) co_return;
  if (request->record().state != RequestState::kPending) co_return co_await request->Unlock();
  store::FewNodes nodes = context_.caches.nodes.OfRequest(id);
  for (const NodeId& node : nodes) co_await FreeNode(node, id);
  WallTime now = context_.loop.Now();
  auto reset = [now](NodeRequest& record) {
    if (record.state != RequestState::kPending) return Change::kSkip;
    record.SetState(RequestState::kRequested, now);
    record.nodes.clear();
    return Change::kWrite;
  };
  bool is_reset = co_await request->UpdateAndUnlock(reset);
  if (is_reset) {
    context_.metrics.Add(stats::kCleaned, {"lost_request"});
    logger_.About({request->record().event_id.value_or(""), id.value, ""})
        .Warning("Lost request reset: nobody held its lock");
  }
}

// Never waits for a locked node: DeletedNodeWorker finds it later, when its request is gone.
Task<> LostRequests::FreeNode(NodeId id, RequestId request) {
  auto node = co_await LockUnclaimed(context_, id);
  if (!node) co_return;
  WallTime now = context_.loop.Now();
  auto free = [request, now](Node& record) {
    if (record.allocated_to != request) return Change::kSkip;
    if (record.state == NodeState::kInit) record.SetState(NodeState::kDeleting, now);
    record.Free();
    return Change::kWrite;
  };
  Outcome<bool> freed = co_await Attempt(node->Update(free));
  if (freed) co_return co_await node->Unlock();
  if (!FailedWith(freed, Verdict::kNotFound)) freed.error().Rethrow();
  logger_.About({"", request.value, id.value}).Debug("The node of a lost request is gone");
}

// The cache has shown a request that this launcher served. If it does not any more, the request is gone for
// good.
void LostRequests::RemoveIfServed(const RequestId& id) {
  bool is_there = context_.caches.requests.Find(id) != nullptr || context_.caches.requests.IsMalformed(id);
  if (served_.contains(id) && !is_there) RemoveDirectory(id);
}

void LostRequests::RemoveDirectory(const RequestId& id) {
  auto directory = context_.caches.request_locks.all().find(id);
  if (directory == context_.caches.request_locks.all().end()) {
    served_.erase(id);
    return;
  }
  if (!directory->second.contenders.empty()) return;
  if (!removing_.insert(id).second) {
    changed_.insert(id);
    return;
  }
  to_remove_.push_back(id);
  removal_.Wake();
}

SteadyTime LostRequests::RemoveDirectories() {
  std::vector<RequestId> all = std::exchange(to_remove_, {});
  for (auto first = all.begin(); first != all.end();) {
    auto end = first + std::min<std::ptrdiff_t>(kMaxRemovals, all.end() - first);
    std::vector<RequestId> ids(first, end);
    removals_.Spawn("remove request locks", RemoveNow(std::move(ids)));
    first = end;
  }
  return SteadyTime::max();
}

// If one is not removed, there is a contender that the cache does not show yet and that will leave.
Task<> LostRequests::RemoveNow(std::vector<RequestId> ids) {
  ScopeExit ended([&] {
    for (const RequestId& id : ids) {
      removing_.erase(id);
      if (changed_.erase(id) > 0) RemoveIfServed(id);
    }
  });
  std::vector<RequestId> removed = co_await context_.store.requests.RemoveLocks(ids);
  for (const RequestId& id : removed) {
    served_.erase(id);
    context_.metrics.Add(stats::kCleaned, {"request_lock"});
  }
}

// Finds directories whose launcher is gone: those without a request and without a contender in two
// consecutive sweeps.
Task<> LostRequests::Sweep() {
  std::set<RequestId> seen;
  while (true) {
    co_await context_.loop.SleepFor(context_.intervals.cleanup);
    std::set<RequestId> idle;
    std::vector<RequestId> left;
    for (const auto& [id, directory] : context_.caches.request_locks.all()) {
      if (!directory.contenders.empty() || context_.caches.requests.Find(id) != nullptr) continue;
      if (seen.contains(id)) {
        left.push_back(id);
      } else {
        idle.insert(id);
      }
    }
    seen = std::move(idle);
    for (const RequestId& id : context_.caches.requests.InState(RequestState::kPending)) resets_.Notice(id);
    Outcome<> removed = co_await Attempt(RemoveIfGone(std::move(left)));
    if (!removed) logger_.Debug("The sweep of request locks ended early: {}", removed.error().message());
  }
}

// The cache may not show yet a request that another launcher has accepted.
Task<> LostRequests::RemoveIfGone(std::vector<RequestId> ids) {
  for (auto first = ids.begin(); first != ids.end();) {
    auto end = first + std::min<std::ptrdiff_t>(kMaxRemovals, ids.end() - first);
    std::vector<RequestId> some(first, end);
    std::vector<RequestId> gone = co_await context_.store.requests.Gone(std::move(some));
    for (const RequestId& id : gone) RemoveDirectory(id);
    first = end;
  }
}

}  // namespace nodepool::launcher
