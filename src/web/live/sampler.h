#pragma once

#include <functional>
#include <vector>

#include "async/alarm.h"
#include "base/metrics/prometheus.h"
#include "base/subscription.h"
#include "launcher/launcher.h"
#include "web/live/sample_series.h"

namespace nodepool::web {

// Samples of the cluster for charts: one for each ten seconds of the last hour, one for each minute of the
// last day.
class Sampler {
 public:
  // `added` is called for each sample of ten seconds. All outlive it.
  Sampler(Loop& loop, const launcher::Launcher& launcher, const metrics::Prometheus& prometheus,
          std::function<void(const Sample&)> added);

  const SampleSeries& hour() const { return hour_; }
  const SampleSeries& day() const { return day_; }

 private:
  void Tick();
  void Count(const Node* node, std::ptrdiff_t by);
  void NodeChanged(const Node* before, const Node* after);
  void RequestChanged(const store::StoredRequest* before, const store::StoredRequest& after);
  Level Now() const;

  Loop& loop_;
  const launcher::Launcher& launcher_;
  const metrics::Prometheus& prometheus_;
  std::function<void(const Sample&)> added_;
  std::map<ProviderName, CountsByState> nodes_by_provider_;  // without zeros
  SampleSeries hour_;
  SampleSeries day_;
  SteadyTime next_;
  int ticks_ = 0;
  Alarm tick_;
  std::vector<Subscription> subscriptions_;
};

}  // namespace nodepool::web
