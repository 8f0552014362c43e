#pragma once

#include "config/config_loader.h"
#include "driver/driver.h"

namespace nodepool {

// The drivers that are part of the programs; each is one line here.
void AddBuiltinDrivers(driver::Registry& registry);

// What sections of other known drivers may contain: they can be validated
// though not run.
config::DriverSchemas KnownDriverSchemas();

}  // namespace nodepool
