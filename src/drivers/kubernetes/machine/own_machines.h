#pragma once

#include <vector>

#include "drivers/kubernetes/api/cloud.h"

namespace nodepool::drivers::kubernetes {

// What carries this provider's marks in the cluster, read now: namespaces, projects, or pods in the pools'
// namespaces (driver-kubernetes.md 13). Objects that are being deleted are among them.
Task<std::vector<Object>> ListOwn(Cloud& cloud);

// The external id of what ListOwn lists.
std::string ExternalIdOf(Kind kind, const Object& object);

}  // namespace nodepool::drivers::kubernetes
