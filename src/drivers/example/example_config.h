#pragma once

#include "config/config.h"
#include "config/schema/schema.h"
#include "driver/provider_config.h"

namespace nodepool::drivers {

struct ExampleLabel : driver::LabelConfig {
  std::string instance_type;
};

struct ExampleConfig : driver::ProviderConfig {
  std::string region;
  std::string project;
};

const config::Schema& ExampleSchema();

// Throws Error(kInvalid) with line and column.
std::shared_ptr<const ExampleConfig> LoadExampleConfig(const config::ProviderSection& section,
                                                       const config::Config& config);

}  // namespace nodepool::drivers
