#include "daemon/outside_drivers.h"

#include <cstdlib>

#include "driver/loading/load_drivers.h"

namespace nodepool::daemon {

void AddOutsideDrivers(std::vector<std::string> named, driver::Registry& drivers, const log::Logger& logger) {
  std::vector<std::string> directories =
      driver::DriverDirectories(std::move(named), std::getenv("NODEPOOL_DRIVERS_PATH"));
  for (const std::string& fault : driver::LoadDrivers(directories, drivers)) logger.Error("{}", fault);
}

}  // namespace nodepool::daemon
