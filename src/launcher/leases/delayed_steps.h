#pragma once

#include <map>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "launcher/leases/lease_deadlines.h"
#include "sched/leases/lease_step.h"

namespace nodepool::launcher {

// Steps of leases that are to be done later. A step that waits keeps no other step of its lease from being
// done: nobody sleeps in its place.
class DelayedSteps {
 public:
  // Since when this is the lease's step; another one begins anew, without a delay.
  SteadyTime Begun(const LeaseId& id, sched::LeaseStep step, SteadyTime now);
  // The lease's step is not done before this time.
  void Delay(const LeaseId& id, SteadyTime until);
  bool IsDelayed(const LeaseId& id, SteadyTime now) const;
  void Erase(const LeaseId& id);

  // When the first delay ends; SteadyTime::max(): there is none.
  SteadyTime First() const { return ends_.First(); }
  // The leases whose delay has ended, each once.
  std::vector<LeaseId> TakeDue(SteadyTime now) { return ends_.TakeDue(now); }

 private:
  struct Entry {
    sched::LeaseStep step;
    SteadyTime begun;
    SteadyTime until = SteadyTime::min();
  };

  std::map<LeaseId, Entry> entries_;
  LeaseDeadlines ends_;
};

}  // namespace nodepool::launcher
