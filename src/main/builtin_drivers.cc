#include "main/builtin_drivers.h"

#include <cstdlib>

#include "base/logging.h"
#include "driver/load_drivers.h"
#include "drivers/example/example_driver.h"
#include "drivers/fake/fake_driver.h"
#include "drivers/metastatic/metastatic_driver.h"
#include "drivers/openstack/openstack_driver.h"
#include "drivers/schemas/known_drivers.h"
#include "drivers/static/static_driver.h"

namespace nodepool {

void AddBuiltinDrivers(driver::Registry& registry) {
  registry.Add(std::make_unique<drivers::ExampleDriver>());
  registry.Add(std::make_unique<drivers::FakeDriver>());
  registry.Add(std::make_unique<drivers::MetastaticDriver>());
  registry.Add(std::make_unique<drivers::OpenstackDriver>());
  registry.Add(std::make_unique<drivers::StaticDriver>());
}

void AddDrivers(std::vector<std::string> named, driver::Registry& registry) {
  AddBuiltinDrivers(registry);
  log::Logger logger("nodepool.driver.Drivers");
  std::vector<std::string> directories =
      driver::DriverDirectories(std::move(named), std::getenv("NODEPOOL_DRIVERS_PATH"));
  for (const std::string& fault : driver::LoadDrivers(directories, registry)) logger.Error("{}", fault);
}

config::DriverSchemas KnownDriverSchemas() { return drivers::KnownDriverSchema; }

}  // namespace nodepool
