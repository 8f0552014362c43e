#include "main/builtin_drivers.h"

#include <memory>

#include "drivers/aws/aws_driver.h"
#include "drivers/example/example_driver.h"
#include "drivers/fake/fake_driver.h"
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
  for (auto kind : {drivers::kubernetes::Kind::kKubernetes, drivers::kubernetes::Kind::kOpenshift,
                    drivers::kubernetes::Kind::kOpenshiftPods}) {
    registry.Add(std::make_unique<drivers::KubernetesDriver>(kind));
  }
  registry.Add(std::make_unique<drivers::MetastaticDriver>());
  registry.Add(std::make_unique<drivers::OpenstackDriver>());
  registry.Add(std::make_unique<drivers::StaticDriver>());
}

config::DriverSchemas KnownDriverSchemas() { return drivers::KnownDriverSchema; }

}  // namespace nodepool
