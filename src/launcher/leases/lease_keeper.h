#pragma once

#include <vector>

#include "async/task_group.h"
#include "base/subscription.h"
#include "launcher/context.h"

namespace nodepool::launcher {

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
