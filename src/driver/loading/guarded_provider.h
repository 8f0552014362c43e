#pragma once

#include <memory>

#include "driver/driver.h"
#include "driver/image_store.h"
#include "driver/operator_tools.h"
#include "driver/provider.h"

namespace nodepool::driver {

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
