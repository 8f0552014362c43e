#pragma once

#include "async/task_group.h"
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
  bool IsPastReadyAge(const Node& node) const;
  bool IsPastHoldAge(const Node& node) const;
  bool IsUnfinished(const store::StoredNode& node) const;
  bool IsOwnerless(const Node& node) const;
  Task<> RemoveIfOwnerless(NodeId id);
  Task<> Delete(NodeId id, std::string kind, std::string why, std::function<bool(const Node&)> applies);

  Context& context_;
  ProviderManager& providers_;
  log::Logger logger_;
  TaskGroup tasks_;
};

}  // namespace nodepool::launcher
