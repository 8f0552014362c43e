#include "launcher/leases/lease_deadlines.h"

namespace nodepool::launcher {

void LeaseDeadlines::Set(const LeaseId& id, SteadyTime deadline) {
  Erase(id);
  by_id_.emplace(id, deadline);
  in_order_.emplace(deadline, id);
}

void LeaseDeadlines::Erase(const LeaseId& id) {
  auto entry = by_id_.find(id);
  if (entry == by_id_.end()) return;
  in_order_.erase({entry->second, id});
  by_id_.erase(entry);
}

SteadyTime LeaseDeadlines::First() const {
  return in_order_.empty() ? SteadyTime::max() : in_order_.begin()->first;
}

std::vector<LeaseId> LeaseDeadlines::TakeDue(SteadyTime now) {
  std::vector<LeaseId> due;
  while (First() <= now) {
    due.push_back(in_order_.begin()->second);
    Erase(due.back());
  }
  return due;
}

}  // namespace nodepool::launcher
