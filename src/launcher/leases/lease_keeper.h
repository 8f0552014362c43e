#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "async/reconciler.h"
#include "async/task_group.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/subscription.h"
#include "launcher/context.h"

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

// Finds, now and every minute, what no event announces: frees nodes and deletes requests whose lease is gone,
// and calls `drop` for each lease one of whose nodes is locked by another process. Runs until it is
// cancelled.
Task<> SweepLeases(Context& context, log::Logger logger, std::function<void(const LeaseId&)> drop);

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

// This launcher's part in the keeping of leases (http-requests.md 1.3). From the moment when there is a
// lease, or a node in use for one, all launchers contend; the elected one moves the leases on (LeaseTerm).
class LeaseKeeper {
 public:
  explicit LeaseKeeper(Context& context);
  ~LeaseKeeper();  // call Stop() first

  // The caches are complete.
  void Start();
  Task<> Stop();

 private:
  bool IsNeeded() const;
  void ContendOnce();
  Task<> Lead();

  Context& context_;
  log::Logger logger_;
  bool contends_ = false;
  TaskGroup tasks_;
  std::vector<Subscription> subscriptions_;
};

}  // namespace nodepool::launcher
