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
  auto entry = shapes_.try_emplace(shape).first;
  Queue& queue = entry->second;
  if (queue.empty() || *order < queue.begin()->first) {
    if (!queue.empty()) heads_.erase(queue.begin()->first);
    heads_.emplace(*order, entry);
  }
  queue.emplace(*order, Waiting{id, &request});
  places_.emplace(id, Place{std::move(shape), std::move(*order)});
}

void Queues::Remove(const RequestId& id) {
  auto place = places_.find(id);
  if (place == places_.end()) return;
  auto entry = shapes_.find(place->second.shape);
  Queue& queue = entry->second;
  queue.erase(place->second.order);
  bool was_head = heads_.erase(place->second.order) > 0;
  if (was_head && !queue.empty()) heads_.emplace(queue.begin()->first, entry);
  if (queue.empty()) shapes_.erase(entry);
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
