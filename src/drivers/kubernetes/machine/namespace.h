#pragma once

#include "drivers/kubernetes/api/cloud.h"
#include "drivers/kubernetes/machine/node_plan.h"

namespace nodepool::drivers::kubernetes {

// Makes the node's own namespace, or of OpenShift its project.
Task<> MakeNamespace(Cloud& cloud, const NodePlan& plan);

// The name of our own account, as OpenShift notes it in projects that we ask for; empty: it is not known.
Task<std::string> OwnName(Cloud& cloud);

}  // namespace nodepool::drivers::kubernetes
