#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "async/event.h"
#include "async/loop.h"
#include "base/ids.h"
#include "launcher/context.h"
#include "launcher/provider_manager.h"
#include "sched/requests/assigner.h"
#include "sched/requests/fill.h"
#include "sched/requests/question.h"
#include "store/records.h"
#include "store/unlocked_records.h"

namespace nodepool::launcher {

// What the decisions of all pools are based on; the Scheduler keeps it up to date.
struct ClusterView {
  sched::Registry registry;  // the pools of all launchers
  sched::Queues queues;      // the requests that no launcher has accepted
};

// Free nodes that a request could not take; none is tried again for a while.
class RejectedNodes {
 public:
  RejectedNodes(const Loop& loop, Duration pause) : loop_(loop), pause_(pause) {}

  void Add(const NodeId& node) { until_[node] = loop_.SteadyNow() + pause_; }
  bool Contains(const NodeId& node) const {
    auto found = until_.find(node);
    return found != until_.end() && loop_.SteadyNow() < found->second;
  }

  // The nodes that are not to be tried now.
  std::set<NodeId> Current() {
    std::erase_if(until_, [this](const auto& entry) { return loop_.SteadyNow() >= entry.second; });
    std::set<NodeId> nodes;
    for (const auto& [node, until] : until_) nodes.insert(node);
    return nodes;
  }
  // When the next one may be tried again; SteadyTime::max(): there is none.
  SteadyTime NextEnd() const {
    SteadyTime next = SteadyTime::max();
    for (const auto& [node, until] : until_) next = std::min(next, until);
    return next;
  }

 private:
  const Loop& loop_;
  Duration pause_;
  std::map<NodeId, SteadyTime> until_;
};

// An accepted request that waits for capacity. Everything it points to outlives its entry.
struct WaitingRequest {
  sched::FillPlan plan;           // with what it waits for
  bool takes_free_nodes = false;  // of the labels that it waits for, except:
  const RejectedNodes* rejected = nullptr;
  Event* changed = nullptr;  // wakes it
};

// The accepted requests of a pool that wait, in service order.
class WaitingRequests {
 public:
  void Put(const sched::ServiceOrder& order, WaitingRequest request);
  void Remove(const sched::ServiceOrder& order);
  // Null: there is none.
  const WaitingRequest* Find(const sched::ServiceOrder& order) const;

  void WakeAll() const;
  bool AnyMissesCapacity() const;
  // Whether any misses something that requests for other labels could take as well.
  bool AnyHoldsBack() const;
  // The pool's resources that they lack: all of them, or those before `before`.
  std::set<std::string> Missing(const sched::ServiceOrder* before = nullptr) const;
  // Whether any of them would take this free node.
  bool AnyTakes(const store::StoredNode& node) const;

 private:
  std::map<sched::ServiceOrder, WaitingRequest> requests_;
  std::set<std::pair<LabelName, sched::ServiceOrder>> takers_;  // of free nodes, by label
};

// A configured pool: its component record, what it offers, what is used of it, and which accepted requests
// wait for it.
class Pool {
 public:
  // `providers` and `cluster` outlive it.
  Pool(Context& context, const ProviderManager& providers, const ClusterView& cluster,
       std::shared_ptr<const driver::ProviderConfig> provider_config,
       std::shared_ptr<const driver::PoolConfig> config, LauncherId launcher_id);

  const PoolKey& key() const { return key_; }
  const LauncherId& launcher_id() const { return launcher_id_; }
  const ClusterView& cluster() const { return cluster_; }
  const driver::ProviderConfig& provider_config() const { return *provider_config_; }
  const std::shared_ptr<const driver::PoolConfig>& config() const { return config_; }
  // The pool's running provider, or null.
  std::shared_ptr<driver::Provider> provider() const { return providers_.Find(key_.provider); }
  // False: the pool only hands out machines that exist already.
  bool launches_nodes() const;
  // Why the running provider cannot be used now; empty: it can, or it does not run.
  std::string ProviderFault() const;
  // Whether nothing can be launched because of it.
  bool is_away() const;
  // The switch that pauses the provider; null: it is not paused.
  const ProviderPause* provider_pause() const;

  // Another configuration is in force.
  void Configure(std::shared_ptr<const driver::ProviderConfig> provider_config,
                 std::shared_ptr<const driver::PoolConfig> config);
  // Writes the component record; ends when it is written.
  Task<> Announce() { return entry_.Register(); }
  Task<> Withdraw() { return entry_.Unregister(); }
  // Whether our own registry shows the record, which implies that the registry is complete.
  bool is_registered() const { return cluster_.registry.Contains(launcher_id_); }
  // Whether the component record says that requests wait for capacity.
  bool is_paused() const { return entry_.content().is_paused; }

  // The pool as requests see it that are not accepted yet.
  sched::PoolView View() const;
  // The pool as an accepted request at this place in the order sees it: what earlier requests wait for is
  // reserved.
  sched::PoolView ViewFor(const sched::ServiceOrder& order) const;
  // Whether the pool would still accept the request, e.g. after a limit was lowered. What others use of the
  // cloud now makes it wait, not fail.
  sched::Decision StillAcceptable(const NodeRequest& request) const;
  // Whether another pool is to launch the request's nodes, since launches fail here (breaker.md 3). Not if
  // ready nodes of this pool are enough.
  bool IsLeftByBreaker(const NodeRequest& request) const;
  // Whether a launch should be tried for the sake of such requests (sched::IsProbeWanted).
  bool IsProbeWanted(const NodeRequest& request) const;
  // Whether the reason for the decline may have passed since the provider last read its cloud: an image or a
  // size is missing. Then provider()->LookAgain() before the request is declined (drivers.md 5.12).
  bool MayHavePassed(const NodeRequest& request, const sched::Decision& decision) const;
  // Why the pool declines the request, in words, without its own name.
  std::string WhyDeclined(const NodeRequest& request, const sched::Decision& decision) const;
  // Its decline, for the request's record.
  sched::Decliner DeclineFor(const std::string& why) const;
  // The resources that nodes of these labels need in total; all are labels of the pool.
  Resources NeedOf(const std::vector<LabelName>& labels) const;
  // The resources in use, including launches that were decided.
  Resources Used() const;
  // What the provider may use in total, and what its pools use; empty while it does not run.
  sched::Budget ProviderBudget() const;
  // Whether a node of the label could be launched, given capacity; not while the provider is paused.
  bool IsLabelAvailable(const LabelName& label) const;
  // Why labels cannot be launched, as it was when each was last considered.
  const std::map<LabelName, std::string>& faults() const { return faults_; }

  // Considers every label, and announces those that cannot be launched although the provider can be used.
  void AnnounceFaults();

  // The waiting requests. Each change is announced in ZooKeeper and may change what other requests get.
  const WaitingRequests& waiting() const { return waiting_; }
  void SetWaiting(const sched::ServiceOrder& order, WaitingRequest request);
  void EndWaiting(const sched::ServiceOrder& order);

 private:
  Component Announcement() const;
  void WaitingChanged();
  sched::LabelView LabelViewOf(const driver::LabelConfig& label) const;
  void AskDriver(const driver::LabelConfig& label, sched::LabelView& view) const;
  std::string WhyNotLaunchable(const driver::LabelConfig& label, const sched::LabelView& view) const;
  bool SetFault(const LabelName& label, std::string fault) const;
  void AddUnknown(Resources& used, const PoolName& pool, const std::map<LabelName, int>& counts) const;
  Resources UsedByPool() const;
  Resources UsedByProvider() const;
  // The pool with nothing reserved for waiting requests.
  sched::PoolView PlainView() const;
  void Reserve(sched::PoolView& view, const sched::ServiceOrder* before) const;

  Context& context_;
  const ProviderManager& providers_;
  const ClusterView& cluster_;
  std::shared_ptr<const driver::ProviderConfig> provider_config_;
  std::shared_ptr<const driver::PoolConfig> config_;
  PoolKey key_;
  LauncherId launcher_id_;
  log::Logger logger_;
  WaitingRequests waiting_;
  mutable std::map<LabelName, std::string> faults_;
  std::map<LabelName, std::string> announced_faults_;
  store::ComponentEntry entry_;  // made from all of the above
};

}  // namespace nodepool::launcher
