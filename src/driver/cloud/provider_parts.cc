#include "driver/cloud/provider_parts.h"

#include "driver/records_environment.h"

namespace nodepool::driver::cloud {

ProviderParts::ProviderParts(ProviderEnvironment provider_environment,
                             std::shared_ptr<const ProviderConfig> provider_config,
                             std::unique_ptr<Adapter> cloud, HostKeyScan key_scan)
    : environment(std::move(provider_environment)),
      config(std::move(provider_config)),
      adapter(std::move(cloud)),
      scan(std::move(key_scan)),
      background(environment.loop, log::Logger("nodepool.StateMachineProvider." + config->name.value)),
      needs(background, *adapter, environment.capacity_changed),
      quota(environment, *adapter, config->name) {}

const store::StoredUpload* ProviderParts::Image(const LabelConfig& label) const {
  if (!label.diskimage) return nullptr;
  return environment.records.images.NewestReadyUpload(*label.diskimage, config->name);
}

Task<> ProviderParts::WaitIdle() {
  while (work_in_progress_ > 0) co_await idle_.Wait();
}

}  // namespace nodepool::driver::cloud
