#pragma once

#include "config/config.h"
#include "config/schema/schema.h"
#include "driver/provider_config.h"

namespace nodepool::drivers {

struct ExampleLabel : driver::LabelConfig {
  ExampleLabel() { host_key_checking = false; }

  std::string instance_type;
};

// An entry of `cloud-images`.
struct ExampleImage {
  std::string name;
  driver::ConnectionSettings connection;
};

struct ExampleConfig : driver::ProviderConfig {
  std::vector<ExampleImage> images;
  std::string region;
  std::string project;
};

const config::Schema& ExampleSchema();

// Throws Error(kInvalid) with line and column.
std::shared_ptr<const ExampleConfig> LoadExampleConfig(const config::ProviderSection& section,
                                                       const config::Config& config);

}  // namespace nodepool::drivers
