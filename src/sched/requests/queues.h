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

// Everything about a request that a pool's decision depends on. Requests of one shape get the same
// decision at the same moment, so only the first of them is evaluated; this makes the work per
// event independent of the number of waiting requests.
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
  // Adds a request, or replaces its former version. Requests that are not waiting, or whose id has
  // no place in the order, are not stored. `request` stays valid until the next Put or Remove of
  // the same id.
  void Put(const RequestId& id, const NodeRequest& request);
  void Remove(const RequestId& id);

  using Shapes = std::map<Shape, Queue>;
  const Shapes& shapes() const { return shapes_; }
  // Where the first request of each shape is, in service order over all shapes.
  const std::map<ServiceOrder, Shapes::const_iterator>& heads() const { return heads_; }
  std::size_t size() const { return places_.size(); }

 private:
  struct Place {
    Shape shape;
    ServiceOrder order;
  };
  Shapes shapes_;
  std::map<ServiceOrder, Shapes::const_iterator> heads_;
  std::unordered_map<RequestId, Place> places_;
};

// The labels for which a waiting request would take a free node.
std::set<LabelName> LabelsToReuse(const Queues& queues);

}  // namespace nodepool::sched
