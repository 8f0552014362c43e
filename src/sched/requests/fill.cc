#include "sched/requests/fill.h"

#include <algorithm>
#include <limits>

#include "model/resources.h"

namespace nodepool::sched {
namespace {

// What a launch that needs `need` would lack; resources reserved for others count as missing
// altogether.
Resources MissingIn(const Budget& budget, const Resources& need) {
  Resources missing = Shortage(budget.limit, budget.used, need);
  for (const auto& [resource, amount] : need) {
    if (amount > 0 && budget.reserved.contains(resource)) missing.try_emplace(resource, amount);
  }
  return missing;
}

void Reserve(Budget& budget, const Resources& missing) {
  for (const auto& [resource, amount] : missing) budget.reserved.insert(resource);
}

int FreeTurns(const PoolView& pool) {
  if (pool.max_concurrency <= 0) return std::numeric_limits<int>::max();
  return std::max(0, pool.max_concurrency - pool.launches_in_progress);
}

}  // namespace

Resources DecliningLimit(const PoolView& pool) {
  if (pool.ignores_provider_quota) return {};
  Resources limits = pool.provider.limit;
  if (!pool.waits_for_others) return limits;
  for (auto& [resource, limit] : limits) {
    auto others = pool.provider.others.find(resource);
    if (others != pool.provider.others.end()) limit = ExactSum(limit, others->second);
  }
  return limits;
}

std::string FillPlan::Missing() const {
  if (!pool_shortage.empty()) return pool_shortage.begin()->first;
  if (!provider_shortage.empty()) return provider_shortage.begin()->first;
  return refused.labels.empty() ? "" : refused.labels.begin()->value;
}

std::vector<LabelName> MissingLabels(const std::vector<LabelName>& wanted,
                                     const std::vector<LabelName>& satisfied) {
  std::map<LabelName, int> missing;
  std::vector<LabelName> order;
  for (const LabelName& label : wanted) {
    if (missing[label]++ == 0) order.push_back(label);
  }
  for (const LabelName& label : satisfied) --missing[label];
  std::vector<LabelName> result;
  for (const LabelName& label : order) {
    result.insert(result.end(), static_cast<std::size_t>(std::max(missing[label], 0)), label);
  }
  return result;
}

FillPlan PlanFill(const PoolView& pool, const std::vector<LabelName>& missing, bool reuse,
                  const std::set<NodeId>& excluded) {
  FillPlan plan;
  Budget of_pool = pool.pool;
  Budget of_provider = pool.provider;
  if (pool.ignores_provider_quota) of_provider.limit.clear();
  if (pool.ignores_provider_quota && !pool.is_cloud_full) of_provider.reserved.clear();
  std::set<NodeId> taken;
  int turns = FreeTurns(pool);
  for (const LabelName& name : missing) {
    auto label = pool.labels.find(name);
    if (label == pool.labels.end()) {
      plan.wait.push_back(name);
      continue;
    }
    if (reuse && label->second.free_nodes != nullptr) {
      const std::set<NodeId>& nodes = *label->second.free_nodes;
      auto is_left = [&](const NodeId& id) { return !taken.contains(id) && !excluded.contains(id); };
      auto free = std::find_if(nodes.upper_bound(label->second.taken_up_to), nodes.end(), is_left);
      if (free != nodes.end()) {
        taken.insert(*free);
        plan.reuse.push_back({name, *free});
        continue;
      }
    }
    const Resources& need = label->second.need;
    Resources missing_in_pool = MissingIn(of_pool, need);
    Resources missing_in_provider = MissingIn(of_provider, need);
    bool is_refused = pool.refused_labels.contains(name);
    if (pool.launches_nodes && missing_in_pool.empty() && missing_in_provider.empty() && !is_refused) {
      Add(of_pool.used, need);
      Add(of_provider.used, need);
      if (turns-- > 0) {
        plan.launch.push_back(name);
      } else {
        ++plan.turns_awaited;
        plan.wait.push_back(name);
      }
      continue;
    }
    Reserve(of_pool, missing_in_pool);
    Reserve(of_provider, missing_in_provider);
    if (!plan.misses_capacity()) {
      plan.pool_shortage = std::move(missing_in_pool);
      plan.provider_shortage = std::move(missing_in_provider);
    }
    if (is_refused) plan.refused.labels.insert(name);
    plan.wait.push_back(name);
  }
  return plan;
}

}  // namespace nodepool::sched
