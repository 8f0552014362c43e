#pragma once

#include "config/schema/schema.h"

namespace nodepool::drivers {

// A provider's section of the drivers `kubernetes`, `openshift` and `openshiftpods` (driver-kubernetes.md 2).
const config::Schema& KubernetesSchema();
const config::Schema& OpenshiftSchema();
const config::Schema& OpenshiftPodsSchema();

}  // namespace nodepool::drivers
