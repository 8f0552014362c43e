#include "driver/cloud/launch/ready_checks.h"

#include <algorithm>

#include "async/attempt.h"
#include "driver/free_node.h"
#include "driver/records_environment.h"

namespace nodepool::driver::cloud {

namespace {

constexpr int kChecks = 3;
constexpr Duration kBetweenChecks = std::chrono::seconds(5);

std::optional<Duration> ShortestInterval(const ProviderConfig& config) {
  std::optional<Duration> shortest;
  for (const auto& [name, pool] : config.pools) {
    if (!pool->recheck_interval) continue;
    shortest = std::min(*pool->recheck_interval, shortest.value_or(*pool->recheck_interval));
  }
  return shortest;
}

bool IsWayToThem(std::size_t failing, std::size_t checked) { return failing > 1 && failing * 2 > checked; }

}  // namespace

Task<> ReadyChecks::Run() {
  std::optional<Duration> interval = ShortestInterval(config_);
  if (!interval) co_return;
  while (true) {
    co_await environment_.loop.SleepFor(*interval);
    Outcome<> done = co_await Attempt(Round());
    if (!done) logger_.Warning("Ready nodes could not be checked, trying again: {}", done.error().message());
  }
}

Task<> ReadyChecks::Round() {
  std::set<NodeId> due = TakeDue();
  const std::size_t checked = due.size();
  for (int check = 1; check <= kChecks && !due.empty(); ++check) {
    if (check > 1) co_await environment_.loop.SleepFor(kBetweenChecks);
    co_await CheckAll(std::exchange(due, {}));
    for (const auto& [id, failure] : failing_) due.insert(id);
  }
  const std::map<NodeId, CheckFailure> failing = std::exchange(failing_, {});
  bool is_way_doubted = IsWayToThem(failing.size(), checked);
  if (is_way_doubted && !std::exchange(is_way_doubted_, true)) {
    logger_.Warning(
        "{} of {} ready nodes that were checked fail, so none is deleted: is the way to them interrupted? "
        "Node {} {}",
        failing.size(), checked, failing.begin()->first, failing.begin()->second.why);
  }
  if (is_way_doubted) co_return;
  is_way_doubted_ = false;
  for (const auto& [id, failure] : failing) co_await Replace(id, failure);
}

const store::StoredNode* ReadyChecks::FindReady(const NodeId& id) const {
  const store::StoredNode* node = environment_.records.nodes.Find(id);
  bool is_ready =
      node != nullptr && node->record.is_free() && !node->is_locked() && node->record.interface_ip;
  return is_ready ? node : nullptr;
}

std::set<NodeId> ReadyChecks::TakeDue() {
  std::map<NodeId, SteadyTime> before = std::exchange(last_checks_, {});
  std::set<NodeId> due;
  SteadyTime now = environment_.loop.SteadyNow();
  for (const NodeId& id : environment_.records.nodes.OfProvider(config_.name)) {
    const store::StoredNode* node = FindReady(id);
    if (node == nullptr) continue;
    auto pool = config_.pools.find(node->record.pool);
    if (pool == config_.pools.end() || !pool->second->recheck_interval) continue;
    auto last = before.find(id);
    bool is_due = last == before.end() || now - last->second >= *pool->second->recheck_interval;
    last_checks_[id] = is_due ? now : last->second;
    if (is_due) due.insert(id);
  }
  return due;
}

Task<> ReadyChecks::CheckAll(std::set<NodeId> nodes) {
  failing_.clear();
  for (const NodeId& id : nodes) {
    const store::StoredNode* node = FindReady(id);
    if (node == nullptr) continue;
    auto pool = config_.pools.find(node->record.pool);
    if (pool == config_.pools.end()) continue;
    checks_.Spawn("check ready node", log::OfNode(id), Check(id, node->record, pool->second->recheck));
  }
  co_await checks_.Join();
}

Task<> ReadyChecks::Check(NodeId id, Node record, std::string how) {
  std::optional<CheckFailure> failure = co_await check_.Run(id, std::move(record), std::move(how));
  if (failure) failing_[id] = std::move(*failure);
}

Task<> ReadyChecks::Replace(NodeId id, CheckFailure failure) {
  const store::StoredNode* node = FindReady(id);
  if (node == nullptr) co_return;
  const boost::json::value external_id = node->record.external_id;
  bool is_marked =
      co_await DeleteFreeNode(environment_.records.store, id, external_id, environment_.loop.Now());
  if (!is_marked) co_return;
  if (environment_.observer != nullptr) environment_.observer->ReadyNodeFailed(config_.name, failure.reason);
  logger_.About(log::OfNode(id)).Warning("The ready node {}: it is deleted", failure.why);
}

}  // namespace nodepool::driver::cloud
