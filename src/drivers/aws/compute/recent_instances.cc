#include "drivers/aws/compute/recent_instances.h"

namespace nodepool::drivers::aws {

void RecentInstances::Add(const std::string& id) {
  DropOld();
  if (ids_.insert(id).second) in_order_.emplace_back(loop_.SteadyNow(), id);
}

bool RecentInstances::Contains(const std::string& id) {
  DropOld();
  return ids_.contains(id);
}

void RecentInstances::DropOld() {
  constexpr Duration kRecent = std::chrono::minutes(5);
  while (!in_order_.empty() && loop_.SteadyNow() - in_order_.front().first >= kRecent) {
    ids_.erase(in_order_.front().second);
    in_order_.pop_front();
  }
}

}  // namespace nodepool::drivers::aws
