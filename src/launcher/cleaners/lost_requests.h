#pragma once

#include <map>
#include <set>
#include <vector>

#include "async/task_group.h"
#include "async/wake_loop.h"
#include "base/subscription.h"
#include "launcher/context.h"

namespace nodepool::launcher {

// Looks after requests whose worker is gone: `pending` without a lock holder
// (launcher.md 22.2), and the lock directories of vanished requests (D-06). Any
// launcher does this for any request. The lock cache tells who is locked, so that
// nobody's lock is probed.
class LostRequests {
 public:
  explicit LostRequests(Context& context);
  ~LostRequests();  // call Stop() first

  void Start();
  Task<> Stop();
  void SessionLost() { resets_.CancelAll(); }

  // The request was ours: its lock directory goes as soon as it does, at once when it is gone.
  void Served(const RequestId& id);

 private:
  void Suspect(const RequestId& id);
  bool IsLost(const RequestId& id) const;
  // Resets those whose grace is over; says when the next one's is.
  SteadyTime ExamineSuspects();
  Task<> Sweep();
  Task<> Reset(RequestId id);
  Task<> FreeNode(NodeId node, RequestId request);
  // Keeps others off a request while `work` deals with it; what happened to its lock directory
  // meanwhile is looked at then.
  Task<> Guarded(RequestId id, Task<> work);
  void RemoveIfServed(const RequestId& id);
  void RemoveDirectory(const RequestId& id);
  Task<> RemoveNow(RequestId id);

  Context& context_;
  log::Logger logger_;
  std::map<RequestId, SteadyTime> suspects_;  // with the end of their grace
  std::set<RequestId> served_;
  std::set<RequestId> under_way_;
  std::set<RequestId> changed_;  // while they were under way
  WakeLoop examination_;
  TaskGroup loops_;
  TaskGroup resets_;
  std::vector<Subscription> subscriptions_;
};

}  // namespace nodepool::launcher
