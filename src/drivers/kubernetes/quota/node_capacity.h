#pragma once

#include <memory>
#include <string>

#include "drivers/kubernetes/quota/capacity.h"
#include "drivers/kubernetes/quota/cluster_room.h"

namespace nodepool::drivers::kubernetes {

// The capacity of the cluster's nodes, and what pods use of it, by a watch of each. Of pods only those that
// hold a place on a node are read; all of them, whoever made them.
class NodeCapacity : public Capacity {
 public:
  NodeCapacity(Cloud& cloud, CapacityChanges changes);

  Task<Resources> Limits() override;
  Resources UsedByOthers() const override;
  void RequirePossible(const KubernetesLabel& label) const override;
  void RequireRoom(const KubernetesLabel& label) const override;

 private:
  bool is_known() const { return nodes_->is_listed() && pods_->is_listed(); }
  // Error(`verdict`) with what one node has at most.
  [[noreturn]] void Refuse(Verdict verdict, const KubernetesLabel& label, const PodNeed& need,
                           ClusterRoom::Fit fit) const;

  Cloud& cloud_;
  ClusterRoom room_;
  std::unique_ptr<ObjectCache> nodes_;
  std::unique_ptr<ObjectCache> pods_;
};

}  // namespace nodepool::drivers::kubernetes
