#include "sched/requests/queues.h"

namespace nodepool::sched {

Shape ShapeOf(const NodeRequest& request) {
  return {request.node_types,  request.reuse,    request.requestor == kMinReadyRequestor,
          request.tenant_name, request.provider, request.declined_by};
}

void Queues::Put(const RequestId& id, const NodeRequest& request) {
  Remove(id);
  auto order = OrderOf(id, request);
  if (!order || request.state != RequestState::kRequested) return;
  Shape shape = ShapeOf(request);
  shapes_[shape].emplace(*order, Waiting{id, &request});
  places_.emplace(id, Place{std::move(shape), std::move(*order)});
}

void Queues::Remove(const RequestId& id) {
  auto place = places_.find(id);
  if (place == places_.end()) return;
  auto queue = shapes_.find(place->second.shape);
  queue->second.erase(place->second.order);
  if (queue->second.empty()) shapes_.erase(queue);
  places_.erase(place);
}

std::set<LabelName> LabelsToReuse(const Queues& queues) {
  std::set<LabelName> labels;
  for (const auto& [shape, queue] : queues.shapes()) {
    if (shape.reuse) labels.insert(shape.node_types.begin(), shape.node_types.end());
  }
  return labels;
}

}  // namespace nodepool::sched
