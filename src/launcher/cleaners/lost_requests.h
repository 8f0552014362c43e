#pragma once

#include <map>
#include <set>
#include <vector>

#include "async/task_group.h"
#include "async/wake_loop.h"
#include "base/subscription.h"
#include "launcher/context.h"

namespace nodepool::launcher {

// Resets requests whose launcher is gone, i.e. `pending` ones without a lock holder (launcher.md 22.2), and
// removes the lock directories of vanished requests (D-06). Any launcher does this for any request. Reads the
// lock cache, so that no lock is probed.
class LostRequests {
 public:
  explicit LostRequests(Context& context);
  ~LostRequests();  // call Stop() first

  void Start();
  Task<> Stop();
  void SessionLost() { resets_.CancelAll(); }

  // This launcher has served the request: its lock directory is removed as soon as the request is gone.
  void Served(const RequestId& id);

 private:
  void Suspect(const RequestId& id);
  bool IsLost(const RequestId& id) const;
  // Resets those whose grace is over; returns when the next grace ends.
  SteadyTime ExamineSuspects();
  Task<> Sweep();
  Task<> Reset(RequestId id);
  Task<> FreeNode(NodeId node, RequestId request);
  // Runs `work` for requests and nothing else for them meanwhile; changes of their lock directories are
  // examined afterwards.
  Task<> Guarded(std::vector<RequestId> ids, Task<> work);
  void RemoveIfServed(const RequestId& id);
  Task<> RemoveIfGone(std::vector<RequestId> ids);
  void RemoveDirectory(const RequestId& id);
  SteadyTime RemoveDirectories();
  Task<> RemoveNow(std::vector<RequestId> ids);

  Context& context_;
  log::Logger logger_;
  std::map<RequestId, SteadyTime> suspects_;  // with the end of each one's grace
  std::set<RequestId> served_;
  std::set<RequestId> under_way_;
  std::set<RequestId> changed_;       // while they were under way
  std::vector<RequestId> to_remove_;  // whose directories are removed together
  WakeLoop examination_;
  WakeLoop removal_;
  TaskGroup loops_;
  TaskGroup resets_;
  std::vector<Subscription> subscriptions_;
};

}  // namespace nodepool::launcher
