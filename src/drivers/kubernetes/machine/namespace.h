#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "drivers/kubernetes/api/cloud.h"
#include "drivers/kubernetes/machine/create_machine.h"

namespace nodepool::drivers::kubernetes {

// Makes the node's own namespace, or of OpenShift its project.
Task<> MakeNamespace(Cloud& cloud, const NodePlan& plan);

// The name of our own account, as OpenShift notes it in projects that we ask for; empty: it is not known.
Task<std::string> OwnName(Cluster& cluster);

// Creates an object in a namespace that may have been made a moment ago, where the cluster's own accounts and
// the caller's rights may still be missing: such refusals are repeated for ten seconds. An object that exists
// already is this attempt's, since the namespace or the object's own name is: the answer to an earlier call
// was lost. The result is empty then (driver-kubernetes.md 4.2).
Task<boost::json::object> CreateInNew(Cloud& cloud, std::string collection, boost::json::object body);

}  // namespace nodepool::drivers::kubernetes
