#pragma once

#include <set>
#include <vector>

#include "async/task_group.h"
#include "async/wake_loop.h"
#include "base/subscription.h"
#include "launcher/context.h"
#include "launcher/leases/delayed_steps.h"
#include "launcher/leases/lease_deadlines.h"

namespace nodepool::launcher {

// The keeper's work from its election to the loss of the leadership (http-requests.md 1.3): moves leases on
// when they, their requests or their nodes change, and ends those that were not renewed.
class LeaseTerm {
 public:
  LeaseTerm(Context& context, log::Logger logger);
  ~LeaseTerm();  // call Stop() first

  // Works until it is cancelled.
  Task<> Run();
  Task<> Stop();

 private:
  using Step = sched::LeaseStep;

  void Subscribe();
  // Gives every lease its full time.
  void GrantAll();
  void LeaseChanged(const LeaseId& id, const store::StoredLease* before, const store::StoredLease* after);
  SteadyTime ActOnTime();
  void EndExpired(SteadyTime now);
  void Expire(const store::StoredLease& lease);
  void Examine(const LeaseId& id);
  Step StepOf(const store::StoredLease& lease) const;
  // The work waits for nothing but ZooKeeper: meanwhile nothing else is done about the lease.
  void Begin(const LeaseId& id, Step step, Task<> work);
  Task<> Guarded(LeaseId id, Step step, Task<> work);
  // Does the lease's step again later, unless it has another one by then.
  void Delay(const LeaseId& id, Step step, Duration pause);
  Task<> Carry(LeaseId id, Step step);
  Task<> NoteRequest(LeaseId id);
  Task<> Take(LeaseId id);
  Task<> Fail(LeaseId id);
  Task<> DropNodes(LeaseId id);
  Task<> End(LeaseId id);
  Task<> EndUnrenewed(LeaseId id, std::int32_t version);

  Context& context_;
  log::Logger logger_;
  LeaseDeadlines deadlines_;
  DelayedSteps delayed_;
  std::set<LeaseId> under_way_;
  std::set<LeaseId> changed_;  // meanwhile
  WakeLoop expiry_;
  TaskGroup tasks_;
  std::vector<Subscription> subscriptions_;
};

}  // namespace nodepool::launcher
