#pragma once

#include <memory>

#include "drivers/kubernetes/api/cloud.h"
#include "model/resources.h"

namespace nodepool::drivers::kubernetes {

// What a cluster itself limits, beside the configuration (driver-kubernetes.md 14.3). Watched, and current in
// memory; where the account may not read it, nothing is limited, which is logged once.
class Capacity {
 public:
  virtual ~Capacity() = default;

  // Begins to watch, and ends when the limits are known, or known to be kept from us; absent: unlimited.
  // Errors: the cluster cannot be reached.
  virtual Task<Resources> Limits() = 0;
  virtual Resources UsedByOthers() const = 0;

  // Error(kInvalid) with figures: the cluster can hold no node of the label, as it is now.
  virtual void RequirePossible(const KubernetesLabel& label) const = 0;
  // Error(kQuota) with figures: it has no room for one now.
  virtual void RequireRoom(const KubernetesLabel& label) const = 0;
};

// That of the cluster's nodes, or of openshiftpods that of the namespaces of its pools. The cloud outlives
// it. Its framework is told when limits or the use of others have changed, and when RequirePossible may
// answer differently.
std::unique_ptr<Capacity> MakeCapacity(Cloud& cloud);

}  // namespace nodepool::drivers::kubernetes
