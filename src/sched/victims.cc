#include "sched/victims.h"

#include <algorithm>

namespace nodepool::sched {

std::vector<NodeId> ChooseVictims(std::vector<UnusedNode> unused, const Resources& shortage,
                                  const std::set<LabelName>& wanted_labels) {
  std::erase_if(unused, [&](const UnusedNode& node) {
    return std::any_of(node.labels.begin(), node.labels.end(),
                       [&](const LabelName& label) { return wanted_labels.contains(label); });
  });
  std::sort(unused.begin(), unused.end(), [](const UnusedNode& a, const UnusedNode& b) {
    return std::tie(a.ready_since, a.id) < std::tie(b.ready_since, b.id);
  });
  Resources missing = shortage;
  std::vector<NodeId> victims;
  for (const UnusedNode& node : unused) {
    bool is_satisfied =
        std::all_of(missing.begin(), missing.end(), [](const auto& entry) { return entry.second <= 0; });
    if (is_satisfied) break;
    bool helps = false;
    for (auto& [resource, amount] : missing) {
      auto it = node.resources.find(resource);
      if (amount <= 0 || it == node.resources.end() || it->second <= 0) continue;
      amount -= it->second;
      helps = true;
    }
    if (helps) victims.push_back(node.id);
  }
  bool is_enough =
      std::all_of(missing.begin(), missing.end(), [](const auto& entry) { return entry.second <= 0; });
  return is_enough ? victims : std::vector<NodeId>{};
}

}  // namespace nodepool::sched
