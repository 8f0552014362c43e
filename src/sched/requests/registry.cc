#include "sched/requests/registry.h"

#include <algorithm>

namespace nodepool::sched {

Registry::Registry(std::vector<RegisteredPool> pools) : pools_(std::move(pools)) {
  for (std::size_t position = 0; position < pools_.size(); ++position) {
    if (pools_[position].is_paused) paused_.push_back(position);
    for (const LabelName& label : pools_[position].labels) by_label_[label].push_back(position);
  }
}

std::vector<const RegisteredPool*> Registry::Candidates(const NodeRequest& request) const {
  std::vector<const RegisteredPool*> candidates;
  auto add = [&](const RegisteredPool& pool) {
    bool has_all = std::all_of(request.node_types.begin(), request.node_types.end(),
                               [&](const LabelName& label) { return pool.labels.contains(label); });
    if (has_all && !request.WasDeclinedBy(pool.id)) candidates.push_back(&pool);
  };
  if (request.node_types.empty()) {
    for (const RegisteredPool& pool : pools_) add(pool);
  } else if (auto offering = by_label_.find(request.node_types.front()); offering != by_label_.end()) {
    for (std::size_t position : offering->second) add(pools_[position]);
  }
  return candidates;
}

bool Registry::Contains(const LauncherId& id) const {
  return std::ranges::find(pools_, id, &RegisteredPool::id) != pools_.end();
}

bool Registry::AllDeclined(const NodeRequest& request) const {
  return !pools_.empty() && std::all_of(pools_.begin(), pools_.end(), [&](const RegisteredPool& pool) {
    return request.WasDeclinedBy(pool.id);
  });
}

}  // namespace nodepool::sched
