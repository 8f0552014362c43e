#include "driver/loading/configured.h"

#include "model/validation.h"

namespace nodepool::driver {
namespace {

using listing::Configured;

void AddPools(Configured& configured, const ProviderConfig& provider) {
  for (const auto& [name, pool] : provider.pools) {
    configured.pools[{provider.name, name}] = pool->Limit().resources();
    std::set<LabelName>& labels_of_pool = configured.pool_labels[{provider.name, name}];
    for (const auto& [label, settings] : pool->labels) {
      if (IsValidationLabel(label)) continue;
      labels_of_pool.insert(label);
      if (!settings->diskimage) continue;
      auto image = configured.images.find(*settings->diskimage);
      if (image == configured.images.end()) continue;
      auto labels = image->second.labels.find(provider.name);
      if (labels != image->second.labels.end()) labels->second.insert(label);
    }
  }
}

void AddUploads(Configured& configured, const ProviderConfig& provider) {
  if (!provider.manages_images) return;
  for (const auto& [name, settings] : provider.diskimages) {
    auto image = configured.images.find(name);
    if (image != configured.images.end() && !settings->is_paused) image->second.labels[provider.name];
  }
}

}  // namespace

Configured ConfiguredBy(const LoadedConfig& config) {
  Configured configured;
  for (const config::ProviderSection& section : config.common.providers)
    configured.drivers[section.name] = section.driver;
  for (const auto& [name, label] : config.common.labels) configured.labels[name] = label.min_ready;
  configured.tenant_limits = config.common.tenant_limits;
  for (const auto& [name, image] : config.common.diskimages)
    configured.images[name] = {image.is_paused, image.rebuild_age, config.common.build_log_dir, {}};
  for (const auto& [name, provider] : config.providers) {
    AddUploads(configured, *provider);
    AddPools(configured, *provider);
  }
  return configured;
}

}  // namespace nodepool::driver
