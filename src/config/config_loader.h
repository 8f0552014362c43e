#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "config/config.h"
#include "config/schema/schema.h"
#include "config/yaml/yaml_reader.h"

namespace nodepool::config {

// What sections of a driver may contain (without the common keys), by the driver's
// name: of drivers at hand and of those known but not built in. Null: there is no
// such driver. A schema that takes any other key says that its list of keys is not
// complete.
using DriverSchemas = std::function<const Schema*(std::string_view driver)>;

// Whether a driver's schema lists all of its keys.
bool IsFullyKnown(const Schema& driver_schema);

struct LoadOptions {
  std::optional<std::string> secure_path;
  DriverSchemas drivers;
  Environment environment = ProcessEnvironment();
};

// Reads a configuration as the daemons do (configuration.md 3-10): leniently about
// unknown keys and spelling of values, which become warnings; strictly about what
// nobody could run with. The sections of providers are found and kept, and read
// later by their drivers, in file order. Errors name file, line, column and key.
Expected<Config> Load(const std::string& path, const LoadOptions& options);

// Whether a connection can be made with these settings; called before the first
// network traffic. No server, TLS incomplete or unreadable, or no TLS towards
// another host without `zookeeper-insecure` (D-03) are errors.
Expected<void> CheckZooKeeperSettings(const ZooKeeperSettings& settings);

// The driver of a provider: `fake` for names that begin so (D-80), else the
// `driver` key, else openstack.
std::string DriverOf(const std::string& provider_name, const Value& section);

}  // namespace nodepool::config
