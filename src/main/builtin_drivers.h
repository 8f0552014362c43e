#pragma once

#include <string>
#include <vector>

#include "config/config_loader.h"
#include "driver/driver.h"

namespace nodepool {

// The drivers that are part of the programs; each is one line here.
void AddBuiltinDrivers(driver::Registry& registry);

// Those, and the drivers of the drivers directories: of the `named` ones, else of
// NODEPOOL_DRIVERS_PATH. What cannot be loaded is logged and left out.
void AddDrivers(std::vector<std::string> named, driver::Registry& registry);

// What sections of other known drivers may contain: they can be validated though
// not run.
config::DriverSchemas KnownDriverSchemas();

}  // namespace nodepool
