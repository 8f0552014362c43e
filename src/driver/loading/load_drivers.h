#pragma once

#include <memory>
#include <string>
#include <vector>

#include "driver/driver.h"

namespace nodepool::driver {

// The directories of extra drivers (D-86): those `named` on the command line, else those of
// NODEPOOL_DRIVERS_PATH (`path_variable`: separated by colons; null: not set), and lib/nodepool/drivers
// beside the program's own directory if it exists.
std::vector<std::string> DriverDirectories(std::vector<std::string> named, const char* path_variable);

// Loads every "*.so" of the directories, by name within each, and adds its driver to
// `drivers`. Objects stay loaded for the life of the process.
//
// Returns the failures, a sentence for each file or directory; each affects only the drivers in question. A
// file made for another version of the API is refused before any of its code runs.
std::vector<std::string> LoadDrivers(const std::vector<std::string>& directories, Registry& drivers);

// Creates the configured provider behind a guard: an exception that its driver throws unexpectedly and an
// answer that makes no sense are logged and affect this provider only.
//
// The guard then answers as follows: a label is not ready; a notification or Idle() is over; what nodes need
// or may use is unknown (an Error, D-26); calls that may fail anyway fail with an Error. Throws Error when
// the driver is unknown or returned no provider.
std::unique_ptr<Provider> CreateGuarded(const Registry& drivers, ProviderEnvironment environment,
                                        std::shared_ptr<const ProviderConfig> config);

// What a builder and a command ask of the configured provider's driver. Their calls may fail anyway, so they
// need no guard. Throw Error as above.
std::unique_ptr<ImageStore> CreateImageStore(const Registry& drivers, DriverEnvironment environment,
                                             std::shared_ptr<const ProviderConfig> config);
std::unique_ptr<OperatorTools> CreateOperatorTools(const Registry& drivers, ToolsEnvironment environment,
                                                   std::shared_ptr<const ProviderConfig> config);

}  // namespace nodepool::driver
