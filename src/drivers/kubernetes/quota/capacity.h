#pragma once

#include <map>
#include <memory>
#include <string>

#include "drivers/kubernetes/api/cloud.h"
#include "drivers/kubernetes/api/object.h"
#include "model/node.h"

namespace nodepool::drivers::kubernetes {

// A pod of a label as the scheduler sees it.
struct PodNeed {
  Resources amounts;
  std::map<std::string, std::string> node_selector;
  // Its specification has tolerations, so that tainted nodes may take it.
  bool may_tolerate = false;
};

// What the nodes of a cluster have for pods, and what pods of others have of it (driver-kubernetes.md 14.3).
// Kept current object by object; a change costs the same however many there are.
//
// Nodes with a taint of the operator's do not count. One that takes no pods for now, because it is cordoned
// or not ready, counts as used by others.
class ClusterRoom {
 public:
  // Pods with this label are in node records of this provider, all others are of others.
  ClusterRoom(std::string own_label, std::string own_value)
      : own_label_(std::move(own_label)), own_value_(std::move(own_value)) {}

  // An object as it was and as it is; null: it did not exist, or does no more. Whether that changes anything
  // here.
  bool NodeChanged(const Object* before, const Object* now);
  // Pods without a node, and those that have ended, use nothing.
  bool PodChanged(const Object* before, const Object* now);

  // `cores`, `instances` and `ram` are always present.
  Resources limits() const;
  Resources used_by_others() const;

  enum class Fit { kNow, kLater, kNever };
  // Whether one node has room for the pod, would have if it were empty, or is too small. Reads all nodes.
  Fit FitOf(const PodNeed& need) const;
  // The most of each resource that one node has for such a pod, now or when it is empty.
  Resources MostOf(const PodNeed& need, Fit fit) const;

 private:
  struct Room {
    bool is_known = false;  // the node's own object was seen
    bool is_closed = false;
    bool is_reserved = false;
    Resources allocatable;
    std::map<std::string, std::string> labels;
    int pods = 0;
    ResourceSum own;
    ResourceSum others;
  };

  // Changes a node and what follows from it for the cluster.
  template <class Change>
  void Alter(const std::string& node, Change change);
  static Resources Free(const Room& room);
  static Resources TakenByOthers(const Room& room);
  static bool MayTake(const Room& room, const PodNeed& need);
  void Place(const Object& pod, bool is_added);

  std::string own_label_;
  std::string own_value_;
  std::map<std::string, Room> nodes_;
  ResourceSum limits_;
  ResourceSum others_;
};

// What ResourceQuotas leave of a namespace (driver-kubernetes.md 14.3).
struct NamespaceRoom {
  Resources limits;  // absent: unlimited
  Resources others;  // what others than our own pods use of them
};

// The strictest of each resource. `own` is what our own pods there request. Quotas for some pods only, and
// limits of limits, do not count.
NamespaceRoom RoomOf(const std::map<std::string, Object>& quotas, const Resources& own);

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
