#include "launcher/leases/delayed_steps.h"

namespace nodepool::launcher {

SteadyTime DelayedSteps::Begun(const LeaseId& id, sched::LeaseStep step, SteadyTime now) {
  auto entry = entries_.find(id);
  if (entry != entries_.end() && entry->second.step != step) {
    Erase(id);
    entry = entries_.end();
  }
  if (entry == entries_.end()) entry = entries_.emplace(id, Entry{step, now}).first;
  return entry->second.begun;
}

void DelayedSteps::Delay(const LeaseId& id, SteadyTime until) {
  auto entry = entries_.find(id);
  if (entry == entries_.end()) return;
  entry->second.until = until;
  ends_.Set(id, until);
}

bool DelayedSteps::IsDelayed(const LeaseId& id, SteadyTime now) const {
  auto entry = entries_.find(id);
  return entry != entries_.end() && now < entry->second.until;
}

void DelayedSteps::Erase(const LeaseId& id) {
  entries_.erase(id);
  ends_.Erase(id);
}

}  // namespace nodepool::launcher
