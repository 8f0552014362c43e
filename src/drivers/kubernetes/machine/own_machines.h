#pragma once

#include <vector>

#include "drivers/kubernetes/api/cloud.h"

namespace nodepool::drivers::kubernetes {

// What carries this provider's marks in the cluster, read now: namespaces, projects, or pods in the pools'
// namespaces (driver-kubernetes.md 13). Objects that are being deleted are among them.
Task<std::vector<Object>> ListOwn(Cloud& cloud);

// The external id of what ListOwn lists.
std::string ExternalIdOf(Kind kind, const Object& object);

// Whether jobs can still use what ListOwn lists, as far as is known: it is not being deleted, and its pod has
// not ended or vanished, e.g. because the cluster has evicted it.
bool IsUsable(Cloud& cloud, const Object& object);

}  // namespace nodepool::drivers::kubernetes
