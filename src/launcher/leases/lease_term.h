#pragma once

#include <optional>
#include <vector>

#include "async/reconciler.h"
#include "async/task_group.h"
#include "async/wake_loop.h"
#include "base/subscription.h"
#include "launcher/context.h"
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
  using Steps = Reconciler<LeaseId>;

  void Subscribe();
  // Gives every lease its full time.
  void GrantAll();
  void LeaseChanged(const LeaseId& id, const store::StoredLease* before, const store::StoredLease* after);
  // Ends the leases whose time is over; returns when the next one's is.
  SteadyTime EndExpired();
  // The lease's next step.
  std::optional<Steps::Work> WorkFor(const LeaseId& id);
  Task<> NoteRequest(LeaseId id);
  Task<> Take(LeaseId id);
  Task<> Fail(LeaseId id);
  Task<> DropNodes(LeaseId id);
  Task<> End(LeaseId id);
  Task<> EndUnrenewed(LeaseId id, std::int32_t version);

  Context& context_;
  log::Logger logger_;
  LeaseDeadlines deadlines_;
  Steps steps_;
  WakeLoop expiry_;
  TaskGroup tasks_;
  std::vector<Subscription> subscriptions_;
};

}  // namespace nodepool::launcher
