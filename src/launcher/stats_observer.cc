#include "launcher/stats_observer.h"

#include <algorithm>

#include "launcher/stats_metrics.h"

namespace nodepool::launcher {

void StatsObserver::LaunchAttemptEnded(const driver::LaunchOutcome& outcome) {
  auto tell = [&](const metrics::Metric& timing, const metrics::Metric& counter,
                  const metrics::LabelValues& labels) {
    metrics_.Observe(timing, labels, outcome.duration);
    metrics_.Add(counter, labels);
  };
  const std::string& provider = outcome.provider.value;
  tell(stats::kProviderLaunchTime, stats::kProviderLaunch, {provider, outcome.result});
  tell(stats::kLaunchTime, stats::kLaunch, {outcome.result});
  if (outcome.az) tell(stats::kZoneLaunchTime, stats::kZoneLaunch, {provider, *outcome.az, outcome.result});
  if (outcome.requestor)
    tell(stats::kRequestorLaunchTime, stats::kRequestorLaunch, {*outcome.requestor, outcome.result});
}

void StatsObserver::LeakedResourceDeleted(const ProviderName& provider, const std::string& kind) {
  std::string documented = kind;
  std::transform(documented.begin(), documented.end(), documented.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  metrics_.Add(stats::kLeaked, {provider.value, documented});
  if (documented != kind) metrics_.Add(stats::kLeakedOldSpelling, {provider.value, kind});
}

}  // namespace nodepool::launcher
