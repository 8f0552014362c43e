#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "config/config_loader.h"
#include "driver/driver.h"

namespace nodepool::driver {

// The section with a validation label (model/image.h) in each pool for each image that is validated: a
// copy of the first label of the image, under another name. A section that is not as it should be, of which
// its driver says what is wrong, is left as it is.
config::ProviderSection WithValidationLabels(config::ProviderSection section,
                                             const std::map<ImageName, config::DiskImage>& images);

// Everything that `driver` refuses in a provider's section, of which it has named `first`: it is
// asked again about the section without its pools, about each pool without its entries, and about
// each entry alone. Pools and their entries are labels, hosts and the like, which nothing else in
// the section refers to; of what stands outside of the pools, only the first fault is found.
std::vector<Error> SectionFaults(Driver& driver, const config::ProviderSection& section,
                                 const config::Config& config, const Error& first);

// A configuration whose providers' sections were read by their drivers. Immutable.
struct LoadedConfig {
  config::Config common;
  std::map<ProviderName, std::shared_ptr<const ProviderConfig>> providers;
};

// A provider whose machines can connect to this host's loopback interface (ProviderConfig); none: there is
// none.
std::optional<ProviderName> ProviderThatReachesThisHost(const LoadedConfig& config);

// How programs with these drivers read a configuration; `others` knows the schemas of drivers
// that are not registered. `drivers` outlives what is returned.
config::LoadOptions LoadOptionsFor(const Registry& drivers, config::DriverSchemas others,
                                   std::optional<std::string> secure_path = std::nullopt);

// Loads nodepool.yaml and the secure file as the daemons do: unknown keys are
// warnings; a provider whose driver is known but not loaded is skipped with a warning (D-54); any other fault
// is the error, with its place. `others` has the schemas of drivers that are not registered.
Expected<std::shared_ptr<const LoadedConfig>> LoadConfig(const std::string& path,
                                                         const std::optional<std::string>& secure_path,
                                                         const Registry& drivers,
                                                         config::DriverSchemas others);

// What can be read of a configuration, for commands that need ZooKeeper and do without the rest: with a file
// that cannot be parsed only what says how ZooKeeper and the launchers' web servers are reached. The faults
// are those for which LoadConfig refuses it. An error: it is not known how ZooKeeper is reached.
struct PartialConfig {
  std::shared_ptr<const LoadedConfig> loaded;
  std::vector<Error> faults;
};
Expected<PartialConfig> LoadWhatCanBe(const std::string& path, const std::optional<std::string>& secure_path,
                                      const Registry& drivers, config::DriverSchemas others);

// A configuration as far as it can be loaded, and everything for which LoadConfig refuses it.
// Sections of providers are read only where the rest has no fault.
struct LoadReport {
  LoadedConfig loaded;
  std::vector<Error> faults;
};
// `main`: the file as parsed, or why it cannot be.
LoadReport LoadAll(const std::string& path, const Expected<config::Document>& main, const Registry& drivers,
                   const config::LoadOptions& options);

}  // namespace nodepool::driver
