#pragma once

#include <memory>
#include <string>

#include "config/validator.h"
#include "driver/loading/load_config.h"

namespace nodepool::driver {

// What `nodepool config-validate` finds without asking anybody (configuration.md 13).
struct ConfigCheck {
  // The strict check; where it finds no error, what the daemons refuse when they load the file, as errors,
  // and what they warn of.
  config::ValidationReport report;
  // Whether the launcher starts with the file, as far as the file decides.
  bool can_start = false;
  // What could be loaded; not to be used unless `can_start`.
  std::shared_ptr<const LoadedConfig> loaded;
};

ConfigCheck CheckConfig(const std::string& path, const Registry& drivers, const config::LoadOptions& options);

// Makes an error of every warning.
void MakeStrict(config::ValidationReport& report);

// What a configuration holds: "3 providers, 11 labels, 2 images".
std::string ContentsOf(const config::Config& config);

// The last line of the report: "FILE is good: 3 providers, 11 labels, 2 images", or how many
// findings there are and what they mean. `path` is FILE.
std::string Summary(const ConfigCheck& check, const std::string& path);

}  // namespace nodepool::driver
