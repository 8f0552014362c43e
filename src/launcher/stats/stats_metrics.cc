#include "launcher/stats/stats_metrics.h"

#include <algorithm>

#include "base/text.h"

namespace nodepool::launcher::stats {

std::vector<const Metric*> All() {
  return {&kLaunch,
          &kLaunchTime,
          &kProviderLaunch,
          &kProviderLaunchTime,
          &kZoneLaunch,
          &kZoneLaunchTime,
          &kRequestorLaunch,
          &kRequestorLaunchTime,
          &kCandidate,
          &kMachineType,
          &kTaken,
          &kReadyFailed,
          &kApiCall,
          &kApiCallTime,
          &kApiRate,
          &kApiWaiting,
          &kNodes,
          &kProviderNodes,
          &kLabelNodes,
          &kHourlyCost,
          &kAddressableRequests,
          &kConfigurationRejected,
          &kLabelShortage,
          &kImageBuildFailed,
          &kImageTooOld,
          &kImageUploadMissing,
          &kMaxServers,
          &kTenantLimit,
          &kProviderUp,
          &kProviderPaused,
          &kBreakersOpen,
          &kProviderStartFailures,
          &kQueueLength,
          &kHostUp,
          &kHostInstances,
          &kHostCores,
          &kHostMemory,
          &kHostCall,
          &kHostCallTime,
          &kLeaked,
          &kLeakedOldSpelling,
          &kCleaned,
          &kMalformed};
}

}  // namespace nodepool::launcher::stats

namespace nodepool::launcher {

namespace {

// Names of several words, for keys without blanks.
std::string OneWord(std::string name) {
  std::ranges::replace(name, ' ', '_');
  return name;
}

}  // namespace

void StatsObserver::LaunchAttemptEnded(const driver::LaunchOutcome& outcome) {
  auto report = [&](const metrics::Metric& timing, const metrics::Metric& counter,
                    const metrics::LabelValues& labels) {
    metrics_.Observe(timing, labels, outcome.duration);
    metrics_.Add(counter, labels);
  };
  const std::string& provider = outcome.provider.value;
  report(stats::kProviderLaunchTime, stats::kProviderLaunch, {provider, outcome.result});
  report(stats::kLaunchTime, stats::kLaunch, {outcome.result});
  if (outcome.az) report(stats::kZoneLaunchTime, stats::kZoneLaunch, {provider, *outcome.az, outcome.result});
  if (outcome.result == "ready" && !outcome.machine_type.empty())
    metrics_.Add(stats::kMachineType, {provider, OneWord(outcome.machine_type)});
  if (outcome.requestor)
    report(stats::kRequestorLaunchTime, stats::kRequestorLaunch, {*outcome.requestor, outcome.result});
  if (breakers_ != nullptr) breakers_->AttemptEnded(outcome);
}

bool StatsObserver::IsWorthAnotherAttempt(const driver::LaunchOutcome& failed) {
  return breakers_ == nullptr || breakers_->IsWorthAnotherAttempt(failed);
}

void StatsObserver::LeakedResourcesDeleted(const ProviderName& provider, const std::string& kind, int count) {
  std::string documented = Lower(kind);
  metrics_.Add(stats::kLeaked, {provider.value, documented}, count);
  if (documented != kind) metrics_.Add(stats::kLeakedOldSpelling, {provider.value, kind}, count);
}

void StatsObserver::ApiCallEnded(const driver::ApiCall& call) {
  constexpr Duration kSlow = std::chrono::seconds(1);
  auto count = [&](const std::string& result) {
    metrics_.Add(stats::kApiCall, {call.driver, call.service, call.method, call.name, result});
  };
  count("attempted");
  if (!call.status) return count("failed");
  std::string status = std::to_string(*call.status);
  count(status);
  metrics_.Observe(stats::kApiCallTime, {call.driver, call.service, call.method, call.name, status},
                   call.duration);
  if (call.duration > kSlow) count("over_1000");
}

void StatsObserver::ApiRateChanged(const driver::ApiRate& rate) {
  const metrics::LabelValues labels = {rate.provider.value, OneWord(rate.budget)};
  driver::ApiRate& known = api_rates_[rate.provider][rate.budget];
  if (known.share != rate.share) metrics_.Set(stats::kApiRate, labels, rate.share);
  if (known.waiting != rate.waiting)
    metrics_.Set(stats::kApiWaiting, labels, static_cast<double>(rate.waiting));
  known = rate;
}

const StatsObserver::ApiRates& StatsObserver::ApiRatesOf(const ProviderName& provider) const {
  return FindOrEmpty(api_rates_, provider);
}

void StatsObserver::CandidateTried(const driver::CandidateOutcome& outcome) {
  const char* result = outcome.is_created ? "created" : "no_capacity";
  metrics_.Add(stats::kCandidate, {outcome.provider.value, OneWord(outcome.candidate), result});
}

void StatsObserver::MachineTaken(const ProviderName& provider, bool is_in_use) {
  metrics_.Add(stats::kTaken, {provider.value, is_in_use ? "in-use" : "ready"});
}

void StatsObserver::ReadyNodeFailed(const ProviderName& provider, std::string_view reason) {
  metrics_.Add(stats::kReadyFailed, {provider.value, std::string(reason)});
}

void StatsObserver::HostAdded(const ProviderName& provider, const std::string& host) {
  hosts_.emplace(provider, host);
}

// So that no receiver shows its last values for ever.
void StatsObserver::HostRemoved(const ProviderName& provider, const std::string& host) {
  auto found = hosts_.find({provider, host});
  if (found != hosts_.end()) hosts_.erase(found);
  if (hosts_.contains({provider, host})) return;
  HostMeasured({.provider = provider, .host = host});
}

void StatsObserver::HostCallEnded(const driver::HostCall& call) {
  const std::string& provider = call.provider.value;
  metrics_.Add(stats::kHostCall, {provider, call.host, call.call, call.is_ok ? "ok" : "failed"});
  metrics_.Observe(stats::kHostCallTime, {provider, call.host, call.call}, call.duration);
}

void StatsObserver::HostMeasured(const driver::HostUse& use) {
  const metrics::LabelValues host = {use.provider.value, use.host};
  metrics_.Set(stats::kHostUp, host, use.is_up ? 1 : 0);
  metrics_.Set(stats::kHostInstances, host, use.instances);
  metrics_.Set(stats::kHostCores, host, use.cores);
  metrics_.Set(stats::kHostMemory, host, use.memory);
}

}  // namespace nodepool::launcher
