#pragma once

#include <string>

#include "base/clock.h"
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

}  // namespace nodepool::drivers::kubernetes
