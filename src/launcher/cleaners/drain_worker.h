#pragma once

#include <set>
#include <vector>

#include "async/event.h"
#include "async/task_group.h"
#include "base/subscription.h"
#include "launcher/context.h"
#include "launcher/provider_manager.h"

namespace nodepool::launcher {

// Deletes the unused nodes of providers that an operator drains (http-actions.md 1.3), also those that become
// ready later. Nodes of providers that only hand out existing machines stay: they would be registered again.
class DrainWorker {
 public:
  DrainWorker(Context& context, const ProviderManager& providers);
  ~DrainWorker();  // call Stop() first

  void Start();
  Task<> Stop();

 private:
  Task<> Run();
  Task<> Delete(NodeId id);
  void Sweep();
  void AddNodesOf(const ProviderName& provider);
  bool IsDrained(const ProviderName& provider) const;
  void NodeChanged(const NodeId& id, const store::StoredNode* node);

  Context& context_;
  const ProviderManager& providers_;
  log::Logger logger_;
  std::set<NodeId> due_;
  Event changed_{"nodes of a drained provider"};
  std::vector<Subscription> subscriptions_;
  TaskGroup tasks_;
};

}  // namespace nodepool::launcher
