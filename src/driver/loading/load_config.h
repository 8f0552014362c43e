#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "config/config.h"
#include "config/config_loader.h"
#include "driver/driver.h"

namespace nodepool::driver {

// A configuration with its providers' sections read by their drivers. Immutable.
struct LoadedConfig {
  config::Config common;
  std::map<ProviderName, std::shared_ptr<const ProviderConfig>> providers;
};

// The schemas of the registered drivers, besides those that `others` knows.
config::DriverSchemas SchemasOf(const Registry& drivers, config::DriverSchemas others);

// Loads nodepool.yaml and the secure file as the daemons do: unknown keys are
// warnings, a provider of a known driver that is not at hand is skipped with a
// warning (D-54), everything else that is wrong is the error, with its place.
// `others` knows the schemas of drivers that are not registered.
Expected<std::shared_ptr<const LoadedConfig>> LoadConfig(const std::string& path,
                                                         const std::optional<std::string>& secure_path,
                                                         const Registry& drivers,
                                                         config::DriverSchemas others);

}  // namespace nodepool::driver
