#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "async/reconciler.h"
#include "async/task_group.h"
#include "base/metrics.h"
#include "base/subscription.h"
#include "driver/loading/load_config.h"
#include "launcher/context.h"
#include "launcher/provider_manager.h"
#include "listing/configured.h"
#include "model/component.h"
#include "model/node.h"
#include "model/node_request.h"
#include "store/cache/cached_records.h"

namespace nodepool::launcher {

// Reports the configured limits of providers and tenants (launcher.md 27.4).
void ReportConfig(const driver::LoadedConfig& config, metrics::Sink& to);

// Reports which labels and images are not as the configuration wants them, and which daemons have rejected
// their configuration. Other launchers report the same of what they know.
void ReportHealth(const listing::Configured& configured, const std::map<std::string, Component>& components,
                  const store::NodeCache& nodes, const store::ImageCache& images, WallTime now,
                  metrics::Sink& to);

// How many nodes and requests of which kind there are, kept up to date change by
// change, so that a report walks only providers, labels and the distinct labels of
// requests (launcher.md 27.3).
class NodeCounts {
 public:
  // `before` is null for what appeared, `after` for what vanished.
  void Change(const Node* before, const Node* after);
  void Change(const NodeRequest* before, const NodeRequest* after);

  // Reports all gauges of launcher.md 27.3. `pools` are the registered ones: what they offer is reported even
  // if it is zero.
  void Report(metrics::Sink& to, const std::vector<const Component*>& pools) const;

 private:
  static constexpr std::size_t kStates = 11;
  using ByState = std::array<int, kStates>;

  void Count(const Node& node, int by);

  ByState all_{};
  std::map<ProviderName, ByState> by_provider_;  // those with nodes
  std::map<LabelName, ByState> by_label_;        // those with nodes
  // In millionths, so that nothing is left over when all nodes are gone.
  std::map<std::pair<ProviderName, LabelName>, std::int64_t> hourly_costs_;
  std::map<std::vector<LabelName>, int> requests_;  // by the labels they ask for
};

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
