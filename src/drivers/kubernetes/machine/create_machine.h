#pragma once

#include "driver/cloud/adapter.h"
#include "drivers/kubernetes/api/cloud.h"

namespace nodepool::drivers::kubernetes {

// Makes a node's namespace or project with an account and, where the label has one, its pod; in openshiftpods
// the pod alone. Ends when jobs can use it (driver-kubernetes.md 5 to 9).
Task<driver::cloud::Instance> CreateMachine(Cloud& cloud, driver::cloud::MachineReport& machine,
                                            driver::cloud::CreateParameters parameters);

}  // namespace nodepool::drivers::kubernetes
