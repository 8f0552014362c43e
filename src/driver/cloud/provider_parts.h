#pragma once

#include <memory>

#include "async/task_group.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/cloud_provider.h"
#include "driver/cloud/quota/label_needs.h"
#include "driver/cloud/quota/quota_cache.h"
#include "driver/cloud/quota/shortages.h"
#include "driver/cloud/work_count.h"
#include "driver/provider_environment.h"
#include "store/records.h"

namespace nodepool::driver::cloud {

// What the parts of one provider share. Lives as long as the provider.
class ProviderParts {
 public:
  // `framework` outlives this.
  ProviderParts(ProviderEnvironment environment, std::shared_ptr<const ProviderConfig> config,
                Framework& framework, const MakeAdapter& make, HostKeyScan scan);

  ProviderEnvironment environment;
  std::shared_ptr<const ProviderConfig> config;
  std::unique_ptr<Adapter> adapter;
  HostKeyScan scan;  // empty: the adapter reports host keys, and machines are never contacted
  TaskGroup background;
  LabelNeeds needs;
  QuotaCache quota;
  Shortages shortages;

  Loop& loop() { return environment.loop; }
  // The newest image of the label that can be booted; null when there is none (yet),
  // or when the label boots a cloud image.
  const store::StoredUpload* Image(const LabelConfig& label) const;
  // The same for a launch for the request: of one that validates an upload, that one.
  const store::StoredUpload* Image(const LabelConfig& label, const NodeRequest& request) const;

  // Launches, deletions and questions under way that use the adapter.
  WorkCount work;
};

}  // namespace nodepool::driver::cloud
