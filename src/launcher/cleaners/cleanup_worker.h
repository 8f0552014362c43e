#pragma once

#include <optional>
#include <set>
#include <vector>

#include "async/reconciler.h"
#include "async/task_group.h"
#include "base/subscription.h"
#include "launcher/context.h"
#include "launcher/provider_manager.h"

namespace nodepool::launcher {

// The sweep for what no event announces, once a minute (launcher.md 22): leaked resources, nodes past their
// age, unfinished `init` nodes (D-34), znodes without data and dead nodes without a provider, which no driver
// deletes. A task that fails does not stop the others.
class CleanupWorker {
 public:
  CleanupWorker(Context& context, ProviderManager& providers);
  ~CleanupWorker();  // call Stop() first

  void Start();
  Task<> Stop();

 private:
  Task<> Run();
  Task<> Pass();
  Task<> MaxReadyAge();
  Task<> MaxHoldAge();
  Task<> ValidationNodes();
  Task<> UnfinishedNodes();
  Task<> EmptyNodes();
  Task<> NodesWithoutProvider();
  Task<> LeakedResources();
  bool HasFault(const ProviderName& provider) const;
  bool IsUnfinished(const store::StoredNode& node) const;
  bool IsOwnerless(const Node& node) const;
  Task<> RemoveIfOwnerless(NodeId id);
  Task<> DeleteWhere(NodeState state, std::string kind, std::string why,
                     std::function<bool(const Node&)> applies);

  Context& context_;
  ProviderManager& providers_;
  log::Logger logger_;
  TaskGroup tasks_;
};

// Resets requests whose launcher is gone, i.e. `pending` ones without a lock holder (launcher.md 22.2), and
// removes the lock directories of vanished requests (D-06). Any launcher does this for any request. Reads the
// lock cache, so that no lock is probed.
class LostRequests {
 public:
  explicit LostRequests(Context& context);
  ~LostRequests();  // call Stop() first

  void Start();
  Task<> Stop();
  void SessionLost() {
    resets_.CancelAll();
    removals_.CancelAll();
  }

  // This launcher has served the request: its lock directory is removed as soon as the request is gone.
  void Served(const RequestId& id);

 private:
  bool IsLost(const RequestId& id) const;
  std::optional<Reconciler<RequestId>::Work> ResetIfLost(const RequestId& id);
  Task<> Sweep();
  Task<> Reset(RequestId id);
  Task<> FreeNode(NodeId node, RequestId request);
  void RemoveIfServed(const RequestId& id);
  Task<> RemoveIfGone(std::vector<RequestId> ids);
  void RemoveDirectory(const RequestId& id);
  SteadyTime RemoveDirectories();
  Task<> RemoveNow(std::vector<RequestId> ids);

  Context& context_;
  log::Logger logger_;
  std::set<RequestId> served_;
  Reconciler<RequestId> resets_;
  // Lock directories are removed together.
  std::vector<RequestId> to_remove_;
  std::set<RequestId> removing_;  // these, and those whose removal is under way
  std::set<RequestId> changed_;   // meanwhile
  WakeLoop removal_;
  TaskGroup removals_;
  TaskGroup loops_;
  std::vector<Subscription> subscriptions_;
};

}  // namespace nodepool::launcher
