#pragma once

#include <memory>

#include "drivers/openstack/config/cloud_config.h"
#include "drivers/openstack/config/openstack_config.h"

namespace nodepool::drivers::openstack {

// A provider's section together with the cloud that it names.
struct OpenstackProviderConfig : OpenstackConfig {
  CloudConfig cloud_config;
};

// Error(kInvalid) names line and column. A cloud that cannot be used, such as one that no file describes, is
// the configuration's `fault`.
std::shared_ptr<const OpenstackProviderConfig> LoadOpenstackConfig(const config::ProviderSection& section,
                                                                   config::Config& config,
                                                                   const CloudFiles& files);

}  // namespace nodepool::drivers::openstack
