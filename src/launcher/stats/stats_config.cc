#include "launcher/stats/stats_config.h"

#include <limits>

#include "launcher/stats/stats_metrics.h"

namespace nodepool::launcher {

void ReportConfig(const driver::LoadedConfig& config, metrics::Sink& to) {
  for (const auto& [name, provider] : config.providers) {
    double servers = 0;
    for (const auto& [pool_name, pool] : provider->pools) servers += pool->max_servers;
    to.Set(stats::kMaxServers, {name.value}, servers);
  }
  constexpr double kUnlimited = std::numeric_limits<double>::infinity();
  for (const auto& [tenant, configured] : config.common.tenant_limits) {
    Resources limits = {{"cores", kUnlimited}, {"instances", kUnlimited}, {"ram", kUnlimited}};
    for (const auto& [resource, limit] : configured) limits[resource] = limit;
    for (const auto& [resource, limit] : limits) to.Set(stats::kTenantLimit, {tenant, resource}, limit);
  }
}

}  // namespace nodepool::launcher
