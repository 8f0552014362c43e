#include "launcher/announced_providers.h"

#include <algorithm>
#include <set>

namespace nodepool::launcher {
namespace {

// The smaller, the more it matters to operators.
int WeightOf(ProviderState state) {
  switch (state) {
    case ProviderState::kFailing:
      return 0;
    case ProviderState::kUp:
      return 1;
    case ProviderState::kStarting:
      return 2;
    case ProviderState::kDraining:
      break;
  }
  return 3;
}

void Adopt(ProviderStatus& status, const ProviderReport& report) {
  status.state = report.state;
  status.since = report.since;
  status.is_draining = report.state == ProviderState::kDraining;
  status.limit = report.limit;
  status.health.is_up = status.health.was_up = report.state == ProviderState::kUp;
  status.health.since = report.since;
  status.health.fault = report.fault;
}

void AddLauncher(ProviderStatus& status, const std::string& hostname) {
  auto place = std::ranges::lower_bound(status.launchers, hostname);
  if (place == status.launchers.end() || *place != hostname) status.launchers.insert(place, hostname);
}

PoolStatus PoolOf(const Component& component, const ProviderStatus& provider, const store::NodeCache& nodes) {
  PoolStatus pool;
  pool.name = component.name.value_or(PoolName());
  pool.launcher = component.id;
  pool.is_registered = true;
  pool.is_waiting = component.is_paused;
  pool.priority = static_cast<int>(component.priority);
  PoolKey key{component.provider_name, pool.name};
  pool.used = nodes.UsedBy(key);
  bool is_available = provider.health.is_up && !provider.pause;
  for (const LabelName& label : component.supported_labels) {
    auto fault = component.label_faults.find(label);
    bool is_faulty = fault != component.label_faults.end();
    pool.labels.push_back({label, is_available && !is_faulty, nodes.FreeNodes(key, label).size(),
                           is_faulty ? std::optional(fault->second) : std::nullopt});
  }
  return pool;
}

void CountNodes(ProviderStatus& status, const store::NodeCache& nodes) {
  std::map<PoolName, std::map<std::string_view, int>> by_pool;
  for (const NodeId& id : nodes.OfProvider(status.name)) {
    const Node& node = nodes.Find(id)->record;
    std::string_view state = node.state ? ToString(*node.state) : "";
    ++status.nodes[state];
    ++by_pool[node.pool][state];
  }
  for (const auto& [pool, use] : nodes.PoolsWithNodes(status.name)) Add(status.used, use.used.total());
  for (PoolStatus& pool : status.pools) pool.nodes = std::move(by_pool[pool.name]);
}

}  // namespace

std::vector<std::pair<BreakerKey, Breaker>> OpenBreakersOf(const store::RecordCache<Breaker>& breakers,
                                                           const ProviderName& provider) {
  std::vector<std::pair<BreakerKey, Breaker>> open;
  const auto& all = breakers.all();
  for (auto it = all.lower_bound(BreakerKey{provider}); it != all.end() && it->first.provider == provider;
       ++it)
    open.emplace_back(it->first, it->second);
  return open;
}

std::map<ProviderName, ProviderStatus> AnnouncedProviders(const store::Caches& records) {
  std::map<ProviderName, ProviderStatus> providers;
  auto provider_of = [&](const ProviderName& name) -> ProviderStatus& {
    auto [entry, is_new] = providers.try_emplace(name);
    if (is_new) {
      entry->second.name = name;
      entry->second.is_own = false;
      // A launcher of the Python implementation announces pools of providers that it can use, and no state.
      ProviderReport usable;
      usable.state = ProviderState::kUp;
      Adopt(entry->second, usable);
      if (const ProviderPause* pause = records.pauses.Find(name)) entry->second.pause = *pause;
      entry->second.breakers = OpenBreakersOf(records.breakers, name);
    }
    return entry->second;
  };
  std::set<ProviderName> reported;
  for (const auto& [path, component] : records.components.all()) {
    for (const auto& [name, report] : component.providers) {
      ProviderStatus& status = provider_of(name);
      AddLauncher(status, component.hostname);
      bool is_first = reported.insert(name).second;
      if (is_first || WeightOf(report.state) < WeightOf(status.state)) Adopt(status, report);
    }
  }
  for (const Component* component : records.components.Pools()) {
    ProviderStatus& status = provider_of(component->provider_name);
    AddLauncher(status, component->hostname);
    PoolName name = component->name.value_or(PoolName());
    if (std::ranges::find(status.pools, name, &PoolStatus::name) == status.pools.end())
      status.pools.push_back(PoolOf(*component, status, records.nodes));
  }
  for (auto& [name, status] : providers) {
    std::ranges::sort(status.pools, {}, &PoolStatus::name);
    CountNodes(status, records.nodes);
  }
  return providers;
}

}  // namespace nodepool::launcher
