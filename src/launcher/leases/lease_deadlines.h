#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"

namespace nodepool::launcher {

// When leases expire, the earliest first. A lease has one deadline.
class LeaseDeadlines {
 public:
  void Set(const LeaseId& id, SteadyTime deadline);
  void Erase(const LeaseId& id);

  // SteadyTime::max() when there is none.
  SteadyTime First() const;
  // Removes and returns those whose deadline has come.
  std::vector<LeaseId> TakeDue(SteadyTime now);

 private:
  std::map<LeaseId, SteadyTime> by_id_;
  std::set<std::pair<SteadyTime, LeaseId>> in_order_;
};

}  // namespace nodepool::launcher
