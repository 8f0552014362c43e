#include "web/live/sampler.h"

#include <algorithm>
#include <iterator>

#include "launcher/stats/stats_metrics.h"
#include "web/live/entries.h"

namespace nodepool::web {
namespace {

constexpr Duration kInterval = std::chrono::seconds(10);
constexpr int kIntervalsInAMinute = 6;
constexpr std::size_t kIntervalsInAnHour = 360;
constexpr std::size_t kMinutesInADay = 1440;
constexpr std::size_t kMaxProvidersCounted = 100;

constexpr NodeState kStates[] = {NodeState::kBuilding, NodeState::kReady, NodeState::kInUse,
                                 NodeState::kUsed,     NodeState::kHold,  NodeState::kDeleting,
                                 NodeState::kFailed};

}  // namespace

Sampler::Sampler(Loop& loop, const launcher::Launcher& launcher, const metrics::Prometheus& prometheus,
                 std::function<void(const Sample&)> added)
    : loop_(loop),
      launcher_(launcher),
      prometheus_(prometheus),
      added_(std::move(added)),
      hour_(kIntervalsInAnHour),
      day_(kMinutesInADay),
      next_(loop.SteadyNow() + kInterval),
      tick_(loop, [this] { Tick(); }) {
  const store::Caches& records = launcher.records();
  for (const auto& [id, node] : records.nodes.all()) Count(&node.record, 1);
  subscriptions_.push_back(records.nodes.OnChange([this](const NodeId&, const auto* before,
                                                         const auto* after) {
    NodeChanged(before != nullptr ? &before->record : nullptr, after != nullptr ? &after->record : nullptr);
  }));
  subscriptions_.push_back(
      records.requests.OnChange([this](const RequestId&, const auto* before, const auto* after) {
        if (after != nullptr) RequestChanged(before, *after);
      }));
  tick_.SetFor(next_);
}

void Sampler::Count(const Node* node, std::ptrdiff_t by) {
  if (node == nullptr || !node->state || std::ranges::find(kStates, *node->state) == std::end(kStates))
    return;
  CountsByState& counts = nodes_by_provider_[node->provider];
  std::size_t& count = counts[ToString(*node->state)];
  count += static_cast<std::size_t>(by);
  if (count == 0) counts.erase(ToString(*node->state));
  if (counts.empty()) nodes_by_provider_.erase(node->provider);
}

void Sampler::NodeChanged(const Node* before, const Node* after) {
  Count(before, -1);
  Count(after, 1);
  bool was_building = before != nullptr && before->state == NodeState::kBuilding;
  if (!was_building || after == nullptr || after->state == NodeState::kBuilding) return;
  bool is_ready = after->state == NodeState::kReady || after->state == NodeState::kInUse;
  bool has_failed = after->state == NodeState::kFailed || after->state == NodeState::kAborted;
  for (SampleSeries* series : {&hour_, &day_}) {
    if (is_ready) series->AddLaunch(after->provider, after->state_time - before->state_time);
    if (has_failed) series->AddFailedLaunch(after->provider);
  }
}

void Sampler::RequestChanged(const store::StoredRequest* before, const store::StoredRequest& after) {
  const NodeRequest& record = after.record;
  bool is_fulfilled = record.state == RequestState::kFulfilled;
  if (!is_fulfilled || before == nullptr || before->record.state == record.state) return;
  if (record.requestor == kMinReadyRequestor) return;
  for (SampleSeries* series : {&hour_, &day_}) series->AddWait(record.state_time - CreationOf(after));
}

Level Sampler::Now() const {
  const store::Caches& records = launcher_.records();
  Level level;
  for (NodeState state : kStates) level.nodes[ToString(state)] = records.nodes.InState(state).size();
  level.requests_waiting = records.requests.InState(RequestState::kRequested).size() +
                           records.requests.InState(RequestState::kPending).size();
  for (const auto& [provider, counts] : nodes_by_provider_) {
    if (level.nodes_by_provider.size() >= kMaxProvidersCounted) break;
    level.nodes_by_provider.emplace(provider, counts);
  }
  for (const auto& [provider, errors] : prometheus_.SumsByFirst(launcher::stats::kProviderLaunch, "error."))
    level.launch_errors.emplace(ProviderName(provider), errors);
  level.api_calls = prometheus_.Sum(launcher::stats::kApiCall, "attempted");
  level.api_failures = prometheus_.Sum(launcher::stats::kApiCall, "failed");
  return level;
}

void Sampler::Tick() {
  next_ += kInterval;
  if (next_ <= loop_.SteadyNow()) next_ = loop_.SteadyNow() + kInterval;  // the host slept
  tick_.SetFor(next_);
  if (!launcher_.records().synced()) return;
  Level level = Now();
  if (++ticks_ % kIntervalsInAMinute == 0) day_.Close(loop_.Now(), level);
  added_(hour_.Close(loop_.Now(), std::move(level)));
}

}  // namespace nodepool::web
