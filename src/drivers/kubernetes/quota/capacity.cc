#include "drivers/kubernetes/quota/capacity.h"

#include "drivers/kubernetes/quota/namespace_quotas.h"
#include "drivers/kubernetes/quota/node_capacity.h"

namespace nodepool::drivers::kubernetes {

std::unique_ptr<Capacity> MakeCapacity(Cloud& cloud, CapacityChanges changes) {
  if (cloud.config->kind == Kind::kOpenshiftPods)
    return std::make_unique<NamespaceQuotas>(cloud, std::move(changes));
  return std::make_unique<NodeCapacity>(cloud, std::move(changes));
}

}  // namespace nodepool::drivers::kubernetes
