#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "launcher/cluster_view.h"
#include "launcher/context.h"
#include "launcher/provider_manager.h"
#include "launcher/requests/waiting_requests.h"
#include "store/cache/component_registry.h"

namespace nodepool::launcher {

// A configured pool: its entry among the components, what it offers, what is used of it, and
// which accepted requests wait for it.
class Pool {
 public:
  // `providers` and `cluster` outlive it.
  Pool(Context& context, const ProviderManager& providers, const ClusterView& cluster,
       std::shared_ptr<const driver::ProviderConfig> provider_config,
       std::shared_ptr<const driver::PoolConfig> config, LauncherId launcher_id, std::string hostname);

  const PoolKey& key() const { return key_; }
  const LauncherId& launcher_id() const { return launcher_id_; }
  const ClusterView& cluster() const { return cluster_; }
  const driver::ProviderConfig& provider_config() const { return *provider_config_; }
  const std::shared_ptr<const driver::PoolConfig>& config() const { return config_; }
  // Null: it is not running now.
  std::shared_ptr<driver::Provider> provider() const { return providers_.Find(key_.provider); }
  // Or its nodes are there already.
  bool launches_nodes() const;

  // Another configuration is in force.
  void Configure(std::shared_ptr<const driver::ProviderConfig> provider_config,
                 std::shared_ptr<const driver::PoolConfig> config);
  // Writes the entry; ends when it stands in the tree.
  Task<> Announce() { return entry_.Register(); }
  Task<> Withdraw() { return entry_.Unregister(); }
  // Whether the entry is visible in our own registry: the proxy for a complete one.
  bool is_registered() const { return cluster_.registry.Contains(launcher_id_); }
  // Whether the entry says that requests wait for capacity.
  bool is_paused() const { return entry_.content().is_paused; }

  // The pool as it is for requests that are not accepted yet.
  sched::PoolView View() const;
  // The pool as it is for an accepted request of this place in the order: what requests
  // before it wait for is reserved.
  sched::PoolView ViewFor(const sched::ServiceOrder& order) const;
  // Whether the pool would decline the request now, e.g. after a lowered limit.
  sched::Decision StillAcceptable(const NodeRequest& request) const;
  // What nodes of these labels, all of the pool, need together.
  Resources NeedOf(const std::vector<LabelName>& labels) const;
  // What is used of it, launches that were decided included.
  Resources Used() const;
  // What the provider may use altogether, and what its pools do; nothing while it does not run.
  sched::Budget ProviderBudget() const;
  // Whether a node of the label could be launched, given capacity.
  bool IsLabelAvailable(const LabelName& label) const;
  // What the driver last said against labels.
  const std::map<LabelName, std::string>& faults() const { return faults_; }

  // What requests wait for. Each change is announced, and may change what others can have.
  const WaitingRequests& waiting() const { return waiting_; }
  void SetWaiting(const sched::ServiceOrder& order, WaitingRequest request);
  void EndWaiting(const sched::ServiceOrder& order);

 private:
  Component Announcement() const;
  void WaitingChanged();
  sched::LabelView LabelViewOf(const driver::LabelConfig& label) const;
  void AskDriver(const driver::LabelConfig& label, sched::LabelView& view) const;
  Resources UsedBy(const PoolKey& pool) const;
  Resources UsedByProvider() const;
  // The pool without what requests wait for.
  sched::PoolView PlainView() const;
  void Reserve(sched::PoolView& view, const sched::ServiceOrder* before) const;

  Context& context_;
  const ProviderManager& providers_;
  const ClusterView& cluster_;
  std::shared_ptr<const driver::ProviderConfig> provider_config_;
  std::shared_ptr<const driver::PoolConfig> config_;
  PoolKey key_;
  LauncherId launcher_id_;
  std::string hostname_;
  log::Logger logger_;
  WaitingRequests waiting_;
  mutable std::map<LabelName, std::string> faults_;  // each is logged once
  store::ComponentEntry entry_;                      // made from all of the above
};

}  // namespace nodepool::launcher
