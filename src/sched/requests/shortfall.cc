#include "sched/requests/shortfall.h"

#include "base/find_or_empty.h"

namespace nodepool::sched {
namespace {

// Nullopt: nothing is missing, or there is no limit.
std::optional<Shortfall> In(const Budget& budget, Shortfall::Limit of, const Resources& missing,
                            const Resources& need) {
  for (const auto& [resource, amount] : missing) {
    auto limit = budget.limit.find(resource);
    if (limit == budget.limit.end()) continue;
    return Shortfall{of,
                     resource,
                     FindOrEmpty(budget.used, resource),
                     limit->second,
                     FindOrEmpty(need, resource),
                     FindOrEmpty(budget.others, resource)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Shortfall> ShortfallOf(const PoolView& pool, const FillPlan& plan) {
  if (plan.wait.empty()) return std::nullopt;
  Resources need;
  for (const LabelName& label : plan.wait) {
    if (auto known = pool.labels.find(label); known != pool.labels.end()) Add(need, known->second.need);
  }
  using Limit = Shortfall::Limit;
  if (auto of_pool = In(pool.pool, Limit::kPool, plan.pool_shortage, need)) return of_pool;
  return In(pool.provider, Limit::kProvider, plan.provider_shortage, need);
}

}  // namespace nodepool::sched
