#pragma once

#include <string>
#include <vector>

#include "base/log/logging.h"
#include "driver/driver.h"

namespace nodepool::daemon {

// Adds the drivers of the drivers directories: of the `named` ones, else of
// NODEPOOL_DRIVERS_PATH. What cannot be loaded is logged and left out.
void AddOutsideDrivers(std::vector<std::string> named, driver::Registry& drivers, const log::Logger& logger);

}  // namespace nodepool::daemon
