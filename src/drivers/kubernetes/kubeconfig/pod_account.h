#pragma once

#include "drivers/kubernetes/kubeconfig/kubeconfig.h"

namespace nodepool::drivers::kubernetes {

// The API server of the cluster that we run in, and our pod's account on it (driver-kubernetes.md 3.4).
// Error(kInvalid): we do not run in a pod, or it has no account.
Connection ReadPodAccount(const Places& places);

}  // namespace nodepool::drivers::kubernetes
