#pragma once

#include "config/config_loader.h"
#include "driver/driver.h"

namespace nodepool {

// The drivers that are part of the programs; each is one line here.
void AddBuiltinDrivers(driver::Registry& registry);

// The schemas of other known drivers, whose sections can be validated but not run.
config::DriverSchemas KnownDriverSchemas();

}  // namespace nodepool
