#pragma once

#include <string>

#include "driver/cloud/adapter.h"
#include "drivers/kubernetes/api/cloud.h"

namespace nodepool::drivers::kubernetes {

// Deletes a node's namespace or project, or of openshiftpods its pod in the namespace `pool`, and ends when
// it is gone (driver-kubernetes.md 12). One that stays is reported each minute, with what holds it.
Task<> DeleteMachine(Cloud& cloud, driver::cloud::MachineReport& machine, std::string external_id,
                     std::string pool);

// What keeps a namespace or pod that is being deleted: its finalizers, and the cluster's words about what is
// in it; empty: the cluster does not say.
std::string WhatHolds(const Object& object);

}  // namespace nodepool::drivers::kubernetes
