#pragma once

#include <memory>

#include "driver/driver.h"

namespace nodepool::driver {

// Makes the provider that the configuration asks for, behind a guard: what its driver
// throws where nobody expects it, or answers although it makes no sense, is logged and
// harms this provider alone.
//
// The guard's answers then: a label is not ready, a notification or Idle() is over; what
// nodes need or may use is unknown (an Error, D-26), as are the results of everything
// that may fail anyway. Throws Error when there is no such driver or no provider.
std::unique_ptr<Provider> CreateGuarded(const Registry& drivers, ProviderEnvironment environment,
                                        std::shared_ptr<const ProviderConfig> config);

}  // namespace nodepool::driver
