#pragma once

#include <nodepool/config/config.h>
#include <nodepool/config/schema/schema.h>
#include <nodepool/driver/provider_config.h>

#include <memory>
#include <string>

namespace lantern_driver {

// The settings of a provider's section.
struct Config : nodepool::driver::ProviderConfig {
  std::string url;    // of the API
  std::string token;  // secret
};

// What a pool offers under a label.
struct Label : nodepool::driver::LabelConfig {
  double ram = 512;  // MiB
};

const nodepool::config::Schema& ProviderSchema();

// Throws nodepool::Error(kInvalid) with line and column.
std::shared_ptr<const Config> ReadConfig(const nodepool::config::ProviderSection& section,
                                         const nodepool::config::Config& config);

}  // namespace lantern_driver
