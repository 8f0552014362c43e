#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "config/config.h"
#include "config/schema/schema.h"
#include "driver/provider_config.h"

namespace nodepool::drivers {

// A label whose nodes are slots of other providers' nodes (drivers.md 8.1).
struct MetastaticLabel : driver::LabelConfig {
  LabelName backing_label;    // requested when there is no free slot
  int max_parallel_jobs = 1;  // slots of each backing node
  Duration grace_time = std::chrono::seconds(60);
  Duration min_retention_time = Duration::zero();
  std::optional<Duration> max_age;
};

// The pools are plain PoolConfig; their labels are MetastaticLabel.
struct MetastaticConfig : driver::ProviderConfig {
  MetastaticConfig() { boot_timeout = std::chrono::seconds(120); }

  // The label of that name, of any pool; null: it is not configured.
  const MetastaticLabel* FindLabel(const LabelName& name) const;
  // A label whose backing nodes have that label; null: none is configured.
  const MetastaticLabel* FindByBackingLabel(const LabelName& name) const;
};

const config::Schema& MetastaticSchema();

// Throws Error(kInvalid) with line and column. A backing label that no pool in `config` offers is a warning
// of it.
std::shared_ptr<const MetastaticConfig> LoadMetastaticConfig(const config::ProviderSection& section,
                                                             config::Config& config);

}  // namespace nodepool::drivers
