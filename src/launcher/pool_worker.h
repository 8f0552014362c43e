#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "async/task_group.h"
#include "driver/load_config.h"
#include "launcher/handler.h"
#include "launcher/provider_manager.h"
#include "launcher/status.h"
#include "sched/assign.h"
#include "sched/victims.h"
#include "store/component_registry.h"

namespace nodepool::launcher {

// What the pool workers of a launcher share beside the context.
struct PoolSurroundings {
  Context& context;
  ProviderManager& providers;
  Ledger& ledger;
  const sched::Registry& registry;                     // kept up to date by the scheduler
  std::function<std::set<LabelName>()> wanted_labels;  // of free nodes, by requests in line
  std::function<void(const RequestId&)> handler_ended;
  std::function<void()> capacity_changed;
};

// A pool of this launcher: its entry among the components, its view for the
// scheduler and the requests it has accepted.
class PoolWorker : public HandlerHost {
 public:
  PoolWorker(PoolSurroundings& surroundings, std::shared_ptr<const driver::ProviderConfig> provider_config,
             std::shared_ptr<const driver::PoolConfig> config, std::string hostname, std::string fqdn);
  ~PoolWorker() override;  // call Stop() first

  // Announces the pool; ends when the entry stands in the tree.
  Task<> Start();
  // Gives accepted requests back and removes the entry.
  Task<> Stop();
  // The pool is not configured any more: removes the entry at once, begins nothing new
  // and ends when running launches have finished and no request is held (D-24).
  Task<> Drain();
  // Another configuration is in force. Waiting requests are checked against it.
  void Reconfigure(std::shared_ptr<const driver::ProviderConfig> provider_config,
                   std::shared_ptr<const driver::PoolConfig> config);
  // The locks of all handlers are gone: drop them.
  void SessionLost();

  // Whether Start() has ended.
  bool is_started() const { return is_started_; }
  // Whether our entry is visible in our own registry: the proxy for a complete one.
  bool is_registered() const;
  sched::PoolView View() const;
  PoolStatus Status() const;
  // What the provider may use altogether, and what its pools do; nothing while it does not run.
  sched::Budget ProviderBudget() const;
  // What nodes of these labels, all of the pool, need together.
  Resources NeedOf(const std::vector<LabelName>& labels) const;
  // Whether a node of the label could be launched, given capacity.
  bool IsLabelAvailable(const LabelName& label) const;
  void Accept(store::StoredRequest request, sched::ServiceOrder order);
  // Lets waiting handlers look again, in service order.
  void CapacityChanged();
  // Lets all handlers look again: the provider came up.
  void ProviderChanged();
  // The provider's cloud refused a launch for quota, of whatever launcher.
  void CloudRefused();
  void RequestGone(const RequestId& id);
  // The handler of an accepted request, or null.
  const Handler* FindHandler(const RequestId& id) const;

  const PoolKey& key() const override { return key_; }
  const LauncherId& launcher_id() const override { return launcher_id_; }
  std::shared_ptr<driver::Provider> provider() const override;
  std::shared_ptr<const driver::PoolConfig> pool_config() const override { return config_; }
  bool launches_nodes() const override;
  sched::PoolView ViewFor(const sched::ServiceOrder& order) const override;
  sched::Decision StillAcceptable(const NodeRequest& request) const override;
  bool AllDeclined(const NodeRequest& request) const override;
  void WaitingChanged(Handler& handler) override;
  void LaunchEnded() override;
  void CapacityFreed() override { surroundings_.capacity_changed(); }
  void MakeRoom(const sched::FillPlan& plan) override;

 private:
  Task<> RunHandler(std::shared_ptr<Handler> handler);
  std::vector<NodeId> ChooseVictims(const sched::FillPlan& plan) const;
  std::vector<sched::UnusedNode> UnusedNodes(const PoolKey& pool) const;
  Task<> Sacrifice(NodeId id, NodeClaim claim);
  bool IsWaitedFor(const store::StoredNode& node) const;
  Task<> LookAgainAt(SteadyTime when);
  bool IsCloudFull() const;
  Task<> ForgetRefusal();
  sched::LabelView LabelViewOf(const driver::LabelConfig& label) const;
  void AskDriver(const driver::LabelConfig& label, sched::LabelView& view) const;
  Resources UsedBy(const PoolKey& pool) const;
  Resources UsedByProvider() const;
  Component Announcement() const;
  // The pool without the claims of waiting handlers.
  sched::PoolView PlainView() const;

  PoolSurroundings& surroundings_;
  Context& context_;
  std::shared_ptr<const driver::ProviderConfig> provider_config_;
  std::shared_ptr<const driver::PoolConfig> config_;
  PoolKey key_;
  LauncherId launcher_id_;
  std::string hostname_;
  log::Logger logger_;
  std::map<RequestId, std::shared_ptr<Handler>> handlers_;
  std::map<sched::ServiceOrder, Handler*> waiting_;
  std::set<std::pair<LabelName, Handler*>> takers_;  // of free nodes, by label
  store::ComponentEntry entry_;                      // made from all of the above
  mutable std::map<LabelName, std::string> faults_;  // what the driver last said, reported once
  SteadyTime next_room_{};                           // when more room may be made
  bool is_look_due_ = false;
  bool is_refusal_known_ = false;
  bool is_started_ = false;
  TaskGroup tasks_;
};

}  // namespace nodepool::launcher
