#include "launcher/requests/waiting_requests.h"

#include <algorithm>
#include <limits>

namespace nodepool::launcher {

void WaitingRequests::Put(const sched::ServiceOrder& order, WaitingRequest request) {
  Remove(order);
  if (request.takes_free_nodes) {
    for (const LabelName& label : request.plan.wait) takers_.emplace(label, order);
  }
  requests_.emplace(order, std::move(request));
}

void WaitingRequests::Remove(const sched::ServiceOrder& order) {
  auto known = requests_.find(order);
  if (known == requests_.end()) return;
  for (const LabelName& label : known->second.plan.wait) takers_.erase({label, order});
  requests_.erase(known);
}

const WaitingRequest* WaitingRequests::Find(const sched::ServiceOrder& order) const {
  auto known = requests_.find(order);
  return known == requests_.end() ? nullptr : &known->second;
}

void WaitingRequests::WakeAll() const {
  for (const auto& [order, request] : requests_) request.changed->Set();
}

bool WaitingRequests::AnyMissesCapacity() const {
  return std::ranges::any_of(requests_,
                             [](const auto& entry) { return entry.second.plan.misses_capacity(); });
}

bool WaitingRequests::AnyHoldsBack() const {
  return std::ranges::any_of(requests_, [](const auto& entry) {
    return entry.second.plan.misses_capacity() && !entry.second.plan.misses_only_labels();
  });
}

std::set<std::string> WaitingRequests::Missing(const sched::ServiceOrder* before) const {
  std::set<std::string> resources;
  for (const auto& [order, request] : requests_) {
    if (before != nullptr && !(order < *before)) break;
    for (const auto& [resource, amount] : request.plan.pool_shortage) resources.insert(resource);
  }
  return resources;
}

bool WaitingRequests::AnyTakes(const store::StoredNode& node) const {
  return std::ranges::any_of(node.record.type, [&](const LabelName& label) {
    const sched::ServiceOrder first{"", -std::numeric_limits<double>::infinity(), 0, ""};
    auto taker = takers_.lower_bound({label, first});
    for (; taker != takers_.end() && taker->first == label; ++taker) {
      if (!requests_.at(taker->second).rejected->Contains(node.id)) return true;
    }
    return false;
  });
}

}  // namespace nodepool::launcher
