#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "async/reconciler.h"
#include "async/task_group.h"
#include "base/subscription.h"
#include "launcher/context.h"
#include "launcher/requests/request_run.h"
#include "launcher/requests/wait_reasons.h"
#include "sched/requests/assigner.h"

namespace nodepool::launcher {

// Central dispatcher: whenever requests, nodes, components or capacity change, it
// asks sched::Assigner for a plan and has the pools carry it out. Changes that
// come together are answered together, and pools are asked only about what the changes concern. Nothing is
// decided before the caches are complete and every own pool is visible in the registry (launcher.md 5).
class Scheduler {
 public:
  // Keeps `cluster` up to date. `served` is called for each request whose run in a pool has ended.
  Scheduler(Context& context, ClusterView& cluster, std::function<void(const RequestId&)> served);
  ~Scheduler();  // call Stop() first

  // The pools to schedule for; they outlive the scheduler's run.
  void SetPools(std::vector<PoolWorker*> pools);
  void Start();
  // Makes no more decisions; declines under way are finished or given up.
  Task<> Stop();

  // Call when something may have changed, of any provider or of this one; cheap, since changes are evaluated
  // later in one go.
  void Wake() {
    are_all_changed_ = true;
    NewsCame();
  }
  void WakeFor(const ProviderName& provider) {
    changed_.insert(provider);
    NewsCame();
  }

  // What is known of registered pools beside their records has changed: a breaker, or a pause.
  void RegistryChanged() {
    is_registry_old_ = true;
    Wake();
  }

  // How often requests were decided about.
  std::uint64_t decision_count() const { return deciding_.count(); }
  // How often it was read for that what a pool offers, and what is used of it.
  std::uint64_t view_count() const { return view_count_; }
  // How often a pool was asked about a request for that.
  std::uint64_t question_count() const { return assigner_.question_count(); }

  // What each pool last said about waiting requests of the shape; null: nothing.
  const sched::Answers* WaitingOf(const sched::Shape& shape) const {
    return cluster_.queues.WaitingOf(shape);
  }

 private:
  // Makes a decision, or a portion of one. Returns when to go on, or to decide again at the latest.
  SteadyTime Decide();
  SteadyTime EndDecision();
  void NewsCame() {
    has_news_ = true;
    deciding_.Wake();
  }
  bool IsReady();
  void ReadPools(SteadyTime now);
  void ReadAllPools();
  void ReadPool(std::size_t position, const std::set<PoolKey>& other_nodes);
  void ReadTenants();
  void NodeChanged(const store::StoredNode* node);
  void CarryOut(const sched::Plan::Acceptance& acceptance);
  void CarryOut(const sched::Plan::Declination& declination);
  Task<> Decline(RequestId id, sched::Answers by);
  Task<> TryDecline(RequestId id, sched::Answers by);
  Task<bool> IsStillDeclined(RequestId id, sched::Answers by);
  const Pool* FindPool(const PoolKey& key) const;
  // A pool is done with the request, or has declined it.
  void DecisionEnded(const RequestId& id);
  Task<> Reconsider(RequestId id, std::int64_t seen_mzxid);
  void RequestChanged(const RequestId& id, const store::StoredRequest* after);
  void AskForProbes();
  void AskForProbes(const NodeRequest& request);
  void RebuildRegistry();
  std::set<LabelName> BrokenLabelsOf(const sched::RegisteredPool& pool) const;
  void CloudRefused(const ProviderName& provider);

  Context& context_;
  log::Logger logger_;
  std::vector<PoolWorker*> pools_;
  ClusterView& cluster_;
  std::function<void(const RequestId&)> served_;
  sched::Assigner assigner_{cluster_.queues, cluster_.registry};
  std::vector<PoolWorker*> asked_;                             // those that the assigner knows, in its order
  std::map<ProviderName, std::vector<std::size_t>> asked_of_;  // their positions
  std::set<ProviderName> changed_;  // providers whose pools may be others than the assigner knows
  bool are_all_changed_ = true;
  SteadyTime all_due_{};      // from then on a decision reads all pools
  bool is_all_read_ = false;  // by the last decision
  std::uint64_t view_count_ = 0;
  std::set<PoolKey> other_nodes_;  // pools whose free nodes may be others than the assigner knows
  // How far the decision is that is being made, portion by portion; absent: nothing has been considered.
  std::optional<sched::ServiceOrder> considered_;
  bool has_news_ = true;                      // something has changed since the decision began
  SteadyTime next_decision_{};                // not before
  bool is_registry_old_ = true;               // something has registered, changed or left since it was built
  std::optional<bool> are_pools_registered_;  // ours, in the registry; absent: not known
  WaitLog wait_log_;
  // Requests whose decision is being carried out, with the version it is based on.
  std::map<RequestId, std::int64_t> under_way_;
  Promises promises_;
  WakeLoop deciding_;
  TaskGroup tasks_;
  std::vector<Subscription> subscriptions_;
};

}  // namespace nodepool::launcher
