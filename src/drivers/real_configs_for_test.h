#pragma once

#include <string>

#include "drivers/aws/config/aws_settings.h"
#include "drivers/fake/fake_config.h"
#include "drivers/gce/config/gce_config.h"
#include "drivers/kubernetes/config/kubernetes_config.h"
#include "drivers/openstack/config/openstack_config.h"
#include "drivers/schemas/known_drivers.h"
#include "drivers/static/static_config.h"

namespace nodepool::drivers {

// The path of a file in tests/data/configs.
inline std::string RealConfigPath(const std::string& name) {
  return std::string(NODEPOOL_TEST_DATA) + "/configs/" + name;
}

// The schemas of the drivers named in those files.
inline const config::Schema* RealSchema(std::string_view driver) {
  if (driver == "aws") return &aws::AwsSchema();
  if (driver == "fake") return &FakeSchema();
  if (driver == "gce") return &gce::GceSchema();
  if (driver == "kubernetes") return &SchemaOf(kubernetes::Kind::kKubernetes);
  if (driver == "openshift") return &SchemaOf(kubernetes::Kind::kOpenshift);
  if (driver == "openshiftpods") return &SchemaOf(kubernetes::Kind::kOpenshiftPods);
  if (driver == "openstack") return &OpenstackSchema();
  if (driver == "static") return &StaticSchema();
  return KnownDriverSchema(driver);
}

}  // namespace nodepool::drivers
