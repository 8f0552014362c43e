#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "driver/cloud/adapter.h"
#include "drivers/kubernetes/api/cloud.h"
#include "drivers/kubernetes/api/object.h"
#include "drivers/kubernetes/machine/create_machine.h"

namespace nodepool::drivers::kubernetes {

// Makes the node's pod. Returns its uid.
Task<std::string> MakePod(Cloud& cloud, const NodePlan& plan);

// Ends when the pod runs; returns the name of the cluster's node. `uid` is MakePod's. Errors: LaunchError
// with the cluster's words when it will not run, or does not until the plan's deadline.
Task<std::string> WaitForPod(Cloud& cloud, driver::cloud::MachineReport& machine, const NodePlan& plan,
                             std::string uid);

// What a pod's state means for its launch (driver-kubernetes.md 9).
struct PodState {
  enum class Kind { kRuns, kWaits, kFailed };
  Kind kind = Kind::kWaits;
  std::string text;  // the cluster's own words, for operators
  // A pod that waits: how long it may stay in this state, or Duration::max(); states of the same cause count
  // together.
  Duration limit = Duration::max();
  std::string cause;
  bool lacks_capacity = false;  // no node of the cluster has room for it
};

PodState StateOf(const Object& pod);

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
