#include "sched/requests/queues.h"

#include "base/find_or_empty.h"

namespace nodepool::sched {
namespace {

LabelName FirstLabelOf(const Shape& shape) {
  return shape.node_types.empty() ? LabelName() : shape.node_types.front();
}

template <class Map, class Key>
void RemoveFrom(Map& lines, const Key& key, const Line& line) {
  auto known = lines.find(key);
  known->second.erase(line.number);
  if (known->second.empty()) lines.erase(known);
}

}  // namespace

Shape ShapeOf(const NodeRequest& request) {
  return {request.node_types,  request.reuse,    request.requestor == kMinReadyRequestor,
          request.tenant_name, request.provider, request.declined_by};
}

void Queues::Put(const RequestId& id, const NodeRequest& request) {
  auto order = OrderOf(id, request);
  if (!order || request.state != RequestState::kRequested) return Remove(id);
  Shapes::iterator line = Enter(ShapeOf(request));
  auto place = places_.find(id);
  bool has_other_shape = place != places_.end() && place->second.line != line;
  if (has_other_shape) Remove(id);
  bool is_new = place == places_.end() || has_other_shape;
  if (is_new || place->second.order != *order) {
    Insert(line->second, *order);
    // Behind the new place, so that what is known of the shape is kept.
    if (!is_new) Take(place->second);
    places_.insert_or_assign(id, Place{line, *order});
  }
  line->second.requests.at(*order) = {id, &request};
}

void Queues::Insert(Line& line, const ServiceOrder& order) {
  bool is_first = line.requests.empty() || order < line.requests.begin()->first;
  bool is_due = line.requests.empty() || due_.contains(line.requests.begin()->first);
  if (is_first && is_due) {
    if (!line.requests.empty()) due_.erase(line.requests.begin()->first);
    due_.emplace(order, &line);
  }
  line.requests.try_emplace(order);
}

void Queues::Remove(const RequestId& id) {
  auto place = places_.find(id);
  if (place == places_.end()) return;
  Take(place->second);
  places_.erase(place);
}

void Queues::Take(const Place& place) {
  Line& line = place.line->second;
  bool was_due_first = due_.erase(place.order) > 0;
  line.requests.erase(place.order);
  if (line.requests.empty()) return Leave(place.line);
  if (was_due_first) SetDue(line);
}

Queues::Shapes::iterator Queues::Enter(Shape shape) {
  auto [entered, is_new] = shapes_.try_emplace(std::move(shape));
  if (!is_new) return entered;
  Line& line = entered->second;
  line.number = ++last_number_;
  line.shape = &entered->first;
  by_first_label_[FirstLabelOf(*line.shape)].emplace(line.number, &line);
  if (line.shape->tenant_name) by_tenant_[*line.shape->tenant_name].emplace(line.number, &line);
  return entered;
}

void Queues::Leave(Shapes::iterator left) {
  Line& line = left->second;
  RemoveFrom(by_first_label_, FirstLabelOf(*line.shape), line);
  if (line.shape->tenant_name) RemoveFrom(by_tenant_, *line.shape->tenant_name, line);
  at_fault_.erase(line.number);
  if (line.is_waiting) NoteChange(line);
  shapes_.erase(left);
}

const Answers* Queues::WaitingOf(const Shape& shape) const {
  auto line = shapes_.find(shape);
  return line == shapes_.end() || !line->second.is_waiting ? nullptr : &line->second.answers;
}

void Queues::Wait(Line& line) {
  due_.erase(line.requests.begin()->first);
  if (!std::exchange(line.is_waiting, true)) NoteChange(line);
  if (line.faults > 0) {
    at_fault_.emplace(line.number, &line);
  } else {
    at_fault_.erase(line.number);
  }
}

const Queues::Lines& Queues::WithFirstLabel(const LabelName& label) const {
  return FindOrEmpty(by_first_label_, label);
}

const Queues::Lines& Queues::OfTenant(const std::string& tenant) const {
  return FindOrEmpty(by_tenant_, tenant);
}

std::set<LabelName> LabelsToReuse(const Queues& queues) {
  std::set<LabelName> labels;
  for (const auto& [shape, line] : queues.shapes()) {
    if (shape.reuse) labels.insert(shape.node_types.begin(), shape.node_types.end());
  }
  return labels;
}

}  // namespace nodepool::sched
