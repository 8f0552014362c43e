#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/metrics/metrics.h"
#include "model/component.h"
#include "model/node.h"
#include "model/node_request.h"

namespace nodepool::launcher {

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

}  // namespace nodepool::launcher
