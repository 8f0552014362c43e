#pragma once

#include <set>
#include <string>

#include "config/config_loader.h"
#include "driver/driver.h"

namespace nodepool {

// The drivers that are part of the programs; each is one line here.
void AddBuiltinDrivers(driver::Registry& registry);

// The names of all drivers that Nodepool has or knows; no other driver may have one of them.
std::set<std::string> DriverNames();

// The schemas of other known drivers, whose sections can be validated but not run.
config::DriverSchemas KnownDriverSchemas();

}  // namespace nodepool
