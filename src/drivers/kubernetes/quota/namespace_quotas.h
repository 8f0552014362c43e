#pragma once

#include <map>
#include <memory>
#include <string>

#include "drivers/kubernetes/quota/capacity.h"
#include "drivers/kubernetes/quota/namespace_room.h"

namespace nodepool::drivers::kubernetes {

// The ResourceQuotas of the namespaces of a provider's pools, by a watch in each. The provider's limits are
// the sums over its pools; a single node must also fit the namespace of its pool.
class NamespaceQuotas : public Capacity {
 public:
  NamespaceQuotas(Cloud& cloud, CapacityChanges changes);

  Task<Resources> Limits() override;
  Resources UsedByOthers() const override;
  void RequirePossible(const KubernetesLabel& label) const override;
  // The cluster's admission refuses what does not fit now.
  void RequireRoom(const KubernetesLabel&) const override {}

 private:
  NamespaceRoom RoomOfPool(const std::string& pool) const;
  // Of what all pools' namespaces limit.
  NamespaceRoom Sum() const;

  Cloud& cloud_;
  std::map<std::string, std::unique_ptr<ObjectCache>> quotas_;  // by pool
};

}  // namespace nodepool::drivers::kubernetes
