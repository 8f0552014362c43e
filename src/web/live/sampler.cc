#include "web/live/sampler.h"

#include "launcher/stats/stats_metrics.h"
#include "web/live/creation.h"

namespace nodepool::web {
namespace {

constexpr Duration kInterval = std::chrono::seconds(10);
constexpr int kIntervalsInAMinute = 6;
constexpr std::size_t kIntervalsInAnHour = 360;
constexpr std::size_t kMinutesInADay = 1440;

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
  launcher::Records records = launcher.records();
  subscriptions_.push_back(
      records.nodes.OnChange([this](const NodeId&, const auto* before, const auto* after) {
        if (after != nullptr) NodeChanged(before != nullptr ? &before->record : nullptr, after->record);
      }));
  subscriptions_.push_back(
      records.requests.OnChange([this](const RequestId&, const auto* before, const auto* after) {
        if (after != nullptr) RequestChanged(before, *after);
      }));
  tick_.SetFor(next_);
}

void Sampler::NodeChanged(const Node* before, const Node& after) {
  if (before == nullptr || before->state != NodeState::kBuilding || after.state == NodeState::kBuilding)
    return;
  bool is_ready = after.state == NodeState::kReady || after.state == NodeState::kInUse;
  bool has_failed = after.state == NodeState::kFailed || after.state == NodeState::kAborted;
  for (SampleSeries* series : {&hour_, &day_}) {
    if (is_ready) series->AddLaunch(after.provider, after.state_time - before->state_time);
    if (has_failed) series->AddFailedLaunch(after.provider);
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
  launcher::Records records = launcher_.records();
  Level level;
  for (NodeState state : kStates) level.nodes[ToString(state)] = records.nodes.InState(state).size();
  level.requests_waiting = records.requests.InState(RequestState::kRequested).size() +
                           records.requests.InState(RequestState::kPending).size();
  level.api_calls = prometheus_.Sum(launcher::stats::kApiCall, "attempted");
  level.api_failures = prometheus_.Sum(launcher::stats::kApiCall, "failed");
  return level;
}

void Sampler::Tick() {
  next_ += kInterval;
  if (next_ <= loop_.SteadyNow()) next_ = loop_.SteadyNow() + kInterval;  // the host slept
  tick_.SetFor(next_);
  if (!launcher_.records().is_complete()) return;
  Level level = Now();
  if (++ticks_ % kIntervalsInAMinute == 0) day_.Close(loop_.Now(), level);
  added_(hour_.Close(loop_.Now(), std::move(level)));
}

}  // namespace nodepool::web
