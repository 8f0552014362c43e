#include "listing/pool_listing.h"

#include <set>

#include "listing/node_counts.h"
#include "listing/provider_listing.h"

namespace nodepool::listing {
namespace {

constexpr std::string_view kServed = "up", kWaiting = "paused", kFailing = "failing";

struct PoolUse {
  int launchers = 0;
  int paused = 0;   // launchers that wait for capacity
  int failing = 0;  // launchers that cannot use the provider
  NodeCounts nodes;
};

// By launcher's host.
std::set<std::pair<std::string, ProviderName>> FailingProviders(
    const std::map<std::string, Component>& components) {
  std::set<std::pair<std::string, ProviderName>> failing;
  for (const auto& [path, component] : components) {
    for (const auto& [provider, report] : component.providers) {
      if (report.state == ProviderState::kFailing) failing.emplace(component.hostname, provider);
    }
  }
  return failing;
}

bool IsBroken(const PoolKey& pool, const store::RecordCache<Breaker>& breakers) {
  return breakers.Find({pool.provider}) != nullptr || breakers.Find({pool.provider, pool.pool}) != nullptr;
}

std::string_view StateOf(const PoolUse& use, bool is_broken) {
  if (use.launchers == 0) return kUnserved;
  if (use.failing == use.launchers || is_broken) return kFailing;
  return use.paused == use.launchers ? kWaiting : kServed;
}

}  // namespace

std::vector<Column> PoolColumns() {
  std::vector<Column> columns = {
      {.key = "provider", .title = "Provider", .kind = Kind::kProvider, .fit = kName},
      {.key = "pool", .title = "Pool", .fit = kName},
      {.key = "state",
       .title = "State",
       .kind = Kind::kState,
       .words = {kServed, kWaiting, kFailing, kUnserved},
       .fit = {Importance::kHigh}}};
  AppendCountColumns(columns);
  return columns;
}

Listing ListPools(const Configured& configured, const std::map<std::string, Component>& components,
                  const store::NodeCache& nodes, const store::RecordCache<Breaker>& breakers) {
  std::map<PoolKey, PoolUse> uses;
  for (const auto& [pool, limit] : configured.pools) uses[pool];
  std::set<std::pair<std::string, ProviderName>> failing = FailingProviders(components);
  for (const auto& [path, component] : components) {
    if (component.kind != ComponentKind::kPool) continue;
    PoolUse& use = uses[{component.provider_name, component.name.value_or(PoolName())}];
    ++use.launchers;
    use.paused += component.is_paused ? 1 : 0;
    use.failing += failing.contains({component.hostname, component.provider_name}) ? 1 : 0;
  }
  for (const auto& [id, node] : nodes.all())
    uses[{node.record.provider, node.record.pool}].nodes.Add(node.record.state);
  Listing listing{PoolColumns(), {}};
  for (const auto& [pool, use] : uses) {
    std::vector<Cell>& row = listing.rows.emplace_back();
    row.emplace_back(pool.provider.value);
    row.emplace_back(pool.pool.value);
    row.push_back(Cell::OfText(StateOf(use, IsBroken(pool, breakers))));
    AppendCounts(row, use.nodes);
  }
  return listing;
}

}  // namespace nodepool::listing
