#include "launcher/cleaners/cleanup_worker.h"

#include <algorithm>

#include "async/attempt.h"
#include "async/cleanup.h"
#include "async/deadline.h"
#include "launcher/cleaners/deleted_node_worker.h"
#include "launcher/cleaners/mark_deleting.h"
#include "launcher/requests/unlock.h"
#include "launcher/stats/stats_metrics.h"
#include "model/validation.h"

namespace nodepool::launcher {

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

bool CleanupWorker::IsPastReadyAge(const Node& node) const {
  if (!node.is_free()) return false;
  for (const LabelName& label : node.type) {
    auto config = context_.config->common.labels.find(label);
    if (config == context_.config->common.labels.end() || !config->second.max_ready_age) continue;
    if (context_.loop.Now() - node.state_time >= *config->second.max_ready_age) return true;
  }
  return false;
}

bool CleanupWorker::IsPastHoldAge(const Node& node) const {
  if (node.state != NodeState::kHold) return false;
  std::optional<Duration> limit = context_.config->common.max_hold_age;
  if (node.hold_expiration && *node.hold_expiration > 0) {
    // A year is longer than any hold and far from overflowing the clock.
    constexpr std::int64_t kYear = 366 * 24 * 3600;
    Duration own = std::chrono::seconds(std::min(*node.hold_expiration, kYear));
    limit = limit ? std::min(*limit, own) : own;
  }
  return limit && context_.loop.Now() - node.state_time >= *limit;
}

bool CleanupWorker::IsUnfinished(const store::StoredNode& node) const {
  if (node.record.state != NodeState::kInit || node.is_locked()) return false;
  if (context_.loop.Now() - node.record.state_time >= context_.intervals.init_node_age) return true;
  const store::StoredRequest* request = context_.caches.requests.Find(node.record.allocated_to);
  return request == nullptr || request->record.state != RequestState::kPending;
}

Task<> CleanupWorker::Delete(NodeId id, std::string kind, std::string why,
                             std::function<bool(const Node&)> applies) {
  return MarkDeleting(context_, providers_, logger_, std::move(id), std::move(kind), std::move(why),
                      std::move(applies));
}

Task<> CleanupWorker::MaxReadyAge() {
  std::vector<NodeId> due;
  for (const NodeId& id : context_.caches.nodes.InState(NodeState::kReady)) {
    if (IsPastReadyAge(context_.caches.nodes.Find(id)->record)) due.push_back(id);
  }
  for (const NodeId& id : due) {
    auto applies = [this](const Node& node) { return IsPastReadyAge(node); };
    co_await Delete(id, "max_ready_age", "ready for longer than max-ready-age", applies);
  }
}

Task<> CleanupWorker::MaxHoldAge() {
  std::vector<NodeId> due;
  for (const NodeId& id : context_.caches.nodes.InState(NodeState::kHold)) {
    if (IsPastHoldAge(context_.caches.nodes.Find(id)->record)) due.push_back(id);
  }
  for (const NodeId& id : due) {
    auto applies = [this](const Node& node) { return IsPastHoldAge(node); };
    co_await Delete(id, "max_hold_age", "its hold has expired", applies);
  }
}

// Of requests that were lost, and freed as others are.
Task<> CleanupWorker::ValidationNodes() {
  auto is_left = [](const Node& node) { return node.is_free() && IsForValidation(node); };
  std::vector<NodeId> due;
  for (const NodeId& id : context_.caches.nodes.InState(NodeState::kReady)) {
    if (is_left(context_.caches.nodes.Find(id)->record)) due.push_back(id);
  }
  for (const NodeId& id : due)
    co_await Delete(id, "validation", "it was booted to validate an image, and nobody else may use it",
                    is_left);
}

Task<> CleanupWorker::UnfinishedNodes() {
  std::vector<NodeId> due;
  for (const NodeId& id : context_.caches.nodes.InState(NodeState::kInit)) {
    if (IsUnfinished(*context_.caches.nodes.Find(id))) due.push_back(id);
  }
  for (const NodeId& id : due) {
    auto applies = [](const Node& node) { return node.state == NodeState::kInit; };
    co_await Delete(id, "unfinished_node", "its launch was never finished", applies);
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

// Another program that locks a node which was just removed creates its znode again, and may write its state,
// but knows neither provider nor machine (D-06).
bool CleanupWorker::IsOwnerless(const Node& node) const {
  bool is_dead = node.state && (*node.state == NodeState::kInit || IsGarbageWhenUnlocked(*node.state));
  return is_dead && node.provider.value.empty() &&
         context_.loop.Now() - node.state_time >= context_.intervals.init_node_age;
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

}  // namespace nodepool::launcher
