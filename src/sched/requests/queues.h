#pragma once

#include <compare>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "model/node_request.h"
#include "sched/requests/order.h"

namespace nodepool::sched {

// Everything about a request that a pool's answer depends on. Requests of one shape
// get the same answer at the same moment, so only the first of them is asked; this
// keeps the work per event independent of the number of waiting requests.
struct Shape {
  std::vector<LabelName> node_types;
  bool reuse = true;
  bool is_min_ready = false;
  std::optional<std::string> tenant_name;
  ProviderName provider;
  std::vector<LauncherId> declined_by;
  auto operator<=>(const Shape&) const = default;
};

Shape ShapeOf(const NodeRequest& request);

// The waiting requests of one shape in service order. The records belong to the
// request cache.
struct Waiting {
  RequestId id;
  const NodeRequest* request = nullptr;
};
using Queue = std::map<ServiceOrder, Waiting>;

// All requests in state `requested`, by shape. O(log n) per change.
class Queues {
 public:
  // Takes the place of a former version. Requests that are not waiting, or whose id
  // has no place in the order, are not kept. `request` stays valid until the next
  // Put or Remove of the same id.
  void Put(const RequestId& id, const NodeRequest& request);
  void Remove(const RequestId& id);

  const std::map<Shape, Queue>& shapes() const { return shapes_; }
  std::size_t size() const { return places_.size(); }

 private:
  struct Place {
    Shape shape;
    ServiceOrder order;
  };
  std::map<Shape, Queue> shapes_;
  std::unordered_map<RequestId, Place> places_;
};

// The labels of which some waiting request would take a free node.
std::set<LabelName> LabelsToReuse(const Queues& queues);

}  // namespace nodepool::sched
