#pragma once

#include <string>

#include "drivers/kubernetes/api/cloud.h"
#include "drivers/kubernetes/machine/node_plan.h"

namespace nodepool::drivers::kubernetes {

// Makes the node's pod. Returns its uid.
Task<std::string> MakePod(Cloud& cloud, const NodePlan& plan);

// Ends when the pod runs; returns the name of the cluster's node. `uid` is MakePod's. Errors: LaunchError
// with the cluster's words when it will not run, or does not until the plan's deadline.
Task<std::string> WaitForPod(Cloud& cloud, driver::cloud::MachineReport& machine, const NodePlan& plan,
                             std::string uid);

}  // namespace nodepool::drivers::kubernetes
