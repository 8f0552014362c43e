#include "main/builtin_drivers.h"

#include <memory>

#include "drivers/aws/aws_driver.h"
#include "drivers/example/example_driver.h"
#include "drivers/fake/fake_driver.h"
#include "drivers/gce/gce_driver.h"
#include "drivers/kubernetes/kubernetes_driver.h"
#include "drivers/metastatic/metastatic_driver.h"
#include "drivers/openstack/openstack_driver.h"
#include "drivers/schemas/known_drivers.h"
#include "drivers/static/static_driver.h"

namespace nodepool {

void AddBuiltinDrivers(driver::Registry& registry) {
  registry.Add(std::make_unique<drivers::AwsDriver>());
  registry.Add(std::make_unique<drivers::ExampleDriver>());
  registry.Add(std::make_unique<drivers::FakeDriver>());
  registry.Add(std::make_unique<drivers::GceDriver>());
  for (auto kind : {drivers::kubernetes::Kind::kKubernetes, drivers::kubernetes::Kind::kOpenshift,
                    drivers::kubernetes::Kind::kOpenshiftPods}) {
    registry.Add(std::make_unique<drivers::KubernetesDriver>(kind));
  }
  registry.Add(std::make_unique<drivers::MetastaticDriver>());
  registry.Add(std::make_unique<drivers::OpenstackDriver>());
  registry.Add(std::make_unique<drivers::StaticDriver>());
}

std::set<std::string> DriverNames() {
  driver::Registry drivers;
  AddBuiltinDrivers(drivers);
  std::vector<std::string> own = drivers.Names();
  std::set<std::string> names(own.begin(), own.end());
  for (std::string_view name : drivers::KnownDriverNames()) names.emplace(name);
  return names;
}

config::DriverSchemas KnownDriverSchemas() { return drivers::KnownDriverSchema; }

}  // namespace nodepool
