#pragma once

#include "base/metrics/metrics.h"
#include "driver/loading/load_config.h"

namespace nodepool::launcher {

// The gauges that say what is configured: limits of providers and tenants
// (launcher.md 27.4).
void ReportConfig(const driver::LoadedConfig& config, metrics::Sink& to);

}  // namespace nodepool::launcher
