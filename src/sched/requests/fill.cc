#include "sched/requests/fill.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/text.h"
#include "model/node.h"

namespace nodepool::sched {

namespace {

// The sequence as a server counts: with 32 bits and a sign, so that -2147483648 follows 2147483647.
// What is no number comes last.
std::uint64_t AgeOf(const std::string& sequence) {
  std::int64_t number = 0;
  const char* end = sequence.data() + sequence.size();
  auto [rest, error] = std::from_chars(sequence.data(), end, number);
  if (error != std::errc() || rest != end) return std::numeric_limits<std::uint64_t>::max();
  return number < 0 ? static_cast<std::uint32_t>(number) : static_cast<std::uint64_t>(number);
}

}  // namespace

std::optional<ServiceOrder> OrderOf(const RequestId& id, const NodeRequest& request) {
  auto parts = ParseRequestId(id);
  if (!parts) return std::nullopt;
  return ServiceOrder{parts->precedence, request.relative_priority, AgeOf(parts->sequence), parts->sequence};
}

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
      // Also of one that only waits for its turn, so that no later label takes its capacity.
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
    // Later labels, which may need less, take nothing of what this one waits for.
    Reserve(of_pool, missing_in_pool);
    Reserve(of_provider, missing_in_provider);
    // Kept of the first label that lacks capacity only, so this is asked before `wait` has this one.
    if (!plan.misses_capacity()) {
      plan.pool_shortage = std::move(missing_in_pool);
      plan.provider_shortage = std::move(missing_in_provider);
    }
    if (is_refused) plan.refused.labels.insert(name);
    plan.wait.push_back(name);
  }
  return plan;
}

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

namespace {

bool IsCovered(const Resources& missing) {
  return std::ranges::all_of(missing, [](const auto& entry) { return entry.second <= 0; });
}

Resources Rest(Resources missing, const Resources& freed) {
  for (auto& [resource, amount] : missing) {
    if (auto it = freed.find(resource); it != freed.end()) amount = ExactSum(amount, -it->second);
  }
  return missing;
}

bool Helps(const UnusedNode& node, const Resources& missing) {
  return std::ranges::any_of(missing, [&](const auto& entry) {
    auto it = node.resources.find(entry.first);
    return entry.second > 0 && it != node.resources.end() && it->second > 0;
  });
}

auto Preference(const UnusedNode& node) {
  return std::tie(node.is_wanted, node.is_of_other_pool, node.ready_since, node.id);
}

// Removes the victims that are not needed, the least preferred first.
void Spare(std::vector<UnusedNode>& victims, const Resources& shortage) {
  for (std::size_t i = victims.size(); i-- > 0;) {
    Resources missing = shortage;
    for (std::size_t other = 0; other < victims.size(); ++other) {
      if (other != i) missing = Rest(std::move(missing), victims[other].resources);
    }
    if (IsCovered(missing)) victims.erase(victims.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void SortByPreference(std::vector<UnusedNode>& unused) {
  std::ranges::sort(unused, [](const auto& a, const auto& b) { return Preference(a) < Preference(b); });
}

}  // namespace

std::vector<NodeId> ChooseVictims(std::vector<UnusedNode> unused, const Resources& shortage) {
  SortByPreference(unused);
  Resources missing = shortage;
  std::vector<UnusedNode> victims;
  for (UnusedNode& node : unused) {
    if (!Helps(node, missing)) continue;
    missing = Rest(std::move(missing), node.resources);
    victims.push_back(std::move(node));
  }
  if (!IsCovered(missing)) return {};
  Spare(victims, shortage);
  std::vector<NodeId> ids;
  for (UnusedNode& node : victims) ids.push_back(std::move(node.id));
  return ids;
}

std::vector<NodeId> ChooseSome(std::vector<UnusedNode> unused, const Resources& needed, std::size_t count) {
  SortByPreference(unused);
  std::vector<NodeId> ids;
  for (UnusedNode& node : unused) {
    if (ids.size() == count) break;
    if (Helps(node, needed)) ids.push_back(std::move(node.id));
  }
  return ids;
}

GiveWay DecideGiveWay(const FillPlan& plan, const Progress& progress, Duration yield_after, SteadyTime now,
                      const std::function<bool()>& is_earlier_held_up) {
  if (!plan.misses_capacity() || progress.ready == 0 || progress.is_launching) return {};
  SteadyTime yield_at = progress.since + yield_after;
  if (now < yield_at) return {.ask_at = yield_at};
  if (is_earlier_held_up()) return {.is_due = true};
  return {.ask_at = now + yield_after};
}

}  // namespace nodepool::sched
