#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "config/schema/schema.h"
#include "config/yaml/value.h"
#include "config/yaml/yaml_reader.h"

namespace nodepool::config {

// An entry of a list whose name an earlier entry of the list has as well: the later one counts
// (configuration.md 9.6).
struct RepeatedName {
  std::string what;  // "pool main of provider a"
  Position before;
  Position again;

  // "line 9, column 3: provider a is defined again; what line 4 defines has no effect".
  std::string ToString() const;
};

// Labels and providers; of each provider the disk images, cloud images and pools; of each pool the labels.
// Whatever is no list of mappings with names is skipped.
std::vector<RepeatedName> RepeatedNames(const Value& document);
// The top-level disk images, of which the validator speaks in the Python implementation's words.
std::vector<RepeatedName> RepeatedDiskImages(const Value& document);

// The schema of the sections of a driver (without the common keys), by the driver's name: of
// available drivers and of known ones that are not built in. Null: there is no such driver. A
// schema that accepts any other key is one whose list of keys is not complete.
using DriverSchemas = std::function<const Schema*(std::string_view driver)>;

// Whether a driver's schema lists all of its keys.
bool IsFullyKnown(const Schema& driver_schema);

struct LoadOptions {
  std::optional<std::string> secure_path;
  DriverSchemas drivers;
  std::vector<std::string> driver_names;  // those at hand, for messages; empty: not named
  Environment environment = ProcessEnvironment();
};

// Reads a configuration as the daemons do (configuration.md 3-10): leniently about unknown keys and
// spelling of values, which become warnings; strictly about faults that make it unusable. The
// sections of providers are collected in file order and read later by their drivers. Errors name
// file, line, column and key.
Expected<Config> Load(const std::string& path, const LoadOptions& options);

// What a configuration holds, and everything that Load refuses in it: at most one fault for each
// top-level section. With any, `config` lacks what could not be read.
struct LoadResult {
  Config config;
  std::vector<Error> faults;
  bool knows_zookeeper = false;  // what says how ZooKeeper is reached has no fault
};
// `main`: the file as parsed, or why it cannot be.
LoadResult LoadAll(const std::string& path, const Expected<Document>& main, const LoadOptions& options);

// Whether a connection can be made with these settings; called before the first network traffic.
// Errors: no server, TLS incomplete or unreadable, or no TLS towards another host without
// `zookeeper-insecure` (D-03).
Expected<void> CheckZooKeeperSettings(const ZooKeeperSettings& settings);

// Everything that CheckZooKeeperSettings refuses, not only the first fault.
std::vector<Error> ZooKeeperFaults(const ZooKeeperSettings& settings);

// What a message says after the name of a driver that does not exist: the nearest spelling, which
// drivers there are, and where others come from. Begins with ";"; empty without `drivers`.
std::string DriverHint(std::string_view name, const std::vector<std::string>& drivers);

// The driver of a provider: `fake` for names that begin so (D-80), otherwise the `driver` key,
// otherwise openstack.
std::string DriverOf(const std::string& provider_name, const Value& section);

}  // namespace nodepool::config
