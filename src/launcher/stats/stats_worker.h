#pragma once

#include <map>
#include <string>
#include <vector>

#include "async/task_group.h"
#include "async/wake_loop.h"
#include "base/subscription.h"
#include "launcher/context.h"
#include "launcher/provider_manager.h"
#include "launcher/stats/stats_nodes.h"

namespace nodepool::launcher {

// Reports the gauges (launcher.md 27.3 to 27.5). To statsd: the elected launcher sends those of the cluster
// after changes of nodes; each launcher sends its own when they change and every ten seconds. Prometheus gets
// all gauges from every launcher.
class StatsWorker {
 public:
  StatsWorker(Context& context, const ProviderManager& providers);
  ~StatsWorker();  // call Stop() first

  // The caches are complete.
  void Start();
  Task<> Stop();
  // Call when the configuration, or which providers are up, has changed.
  void Wake() { local_report_.Wake(); }

  // Sets every gauge of the cluster and of this launcher.
  void Report(metrics::Sink& to) const;

 private:
  Task<> Lead();
  SteadyTime ReportClusterIfChanged();
  SteadyTime ReportLocalGauges();
  void ReportCluster(metrics::Sink& to) const;
  void ReportLocal(metrics::Sink& to) const;
  void NodeChanged(const store::StoredNode* before, const store::StoredNode* after);
  void CountMalformed();

  Context& context_;
  const ProviderManager& providers_;
  log::Logger logger_;
  NodeCounts counts_;
  bool nodes_changed_ = false;              // not only what pools offer
  SteadyTime next_cluster_report_{};        // not before this
  SteadyTime next_comparison_{};            // of the gauges with what was reported, likewise
  metrics::RepeatedGauges cluster_gauges_;  // as reported in this term
  metrics::RepeatedGauges local_gauges_;
  WakeLoop cluster_report_;
  WakeLoop local_report_;
  std::map<std::string, std::uint64_t> malformed_;  // as counted so far, by kind
  TaskGroup tasks_;
  std::vector<Subscription> subscriptions_;
};

}  // namespace nodepool::launcher
