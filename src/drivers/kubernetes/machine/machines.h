#pragma once

#include <string>
#include <vector>

#include "driver/cloud/adapter.h"
#include "drivers/kubernetes/api/cloud.h"

namespace nodepool::drivers::kubernetes {

// What carries this provider's marks in the cluster, read now: namespaces, projects, or pods in the pools'
// namespaces (driver-kubernetes.md 13). Objects that are being deleted are among them.
Task<std::vector<Object>> ListOwn(Cluster& cluster, const KubernetesConfig& config);

// The external id of what ListOwn lists.
std::string ExternalIdOf(Kind kind, const Object& object);

// Whether jobs can still use what ListOwn lists, as far as is known: it is not being deleted, and its pod has
// not ended or vanished, e.g. because the cluster has evicted it.
bool IsUsable(Cloud& cloud, const Object& object);

// Deletes a node's namespace or project, or of openshiftpods its pod in the namespace `pool`, and ends when
// it is gone (driver-kubernetes.md 12). One that stays is reported each minute, with what holds it.
Task<> DeleteMachine(Cloud& cloud, driver::cloud::MachineReport& machine, std::string external_id,
                     std::string pool);

// What keeps a namespace or pod that is being deleted: its finalizers, and the cluster's words about what is
// in it; empty: the cluster does not say.
std::string WhatHolds(const Object& object);

}  // namespace nodepool::drivers::kubernetes
