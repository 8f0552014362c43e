#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "async/task_group.h"
#include "async/wake_loop.h"
#include "base/subscription.h"
#include "launcher/pool_worker.h"
#include "launcher/requests/promises.h"
#include "launcher/requests/wait_log.h"
#include "sched/requests/assign.h"
#include "sched/requests/queues.h"

namespace nodepool::launcher {

// Central dispatcher: whenever requests, nodes, components or capacity change, it
// asks sched::Assign for a plan and has the pools carry it out. Changes that
// come together are answered together. Nothing is decided before the caches are
// complete and every own pool is visible in the registry (launcher.md 5).
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

  // Call when something may have changed; cheap, since changes are evaluated later in one go.
  void Wake() {
    has_news_ = true;
    deciding_.Wake();
  }

  // What is known of registered pools beside their records has changed: a breaker, or a pause.
  void RegistryChanged() {
    is_registry_old_ = true;
    Wake();
  }

  // How often requests were decided about.
  std::uint64_t decision_count() const { return deciding_.count(); }

  // What each pool last said about waiting requests, by shape.
  const std::map<sched::Shape, sched::Answers>& waiting() const { return waiting_; }

 private:
  // Makes a decision, or a portion of one. Returns when to go on, or to decide again at the latest.
  SteadyTime Decide();
  SteadyTime EndRound();
  bool IsReady();
  bool IsProviderAtFault() const;
  sched::Snapshot TakeSnapshot() const;
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
  void AskForProbes(const NodeRequest& request);
  void RebuildRegistry();
  std::set<LabelName> BrokenLabelsOf(const sched::RegisteredPool& pool) const;
  void CloudRefused(const ProviderName& provider);

  Context& context_;
  log::Logger logger_;
  std::vector<PoolWorker*> pools_;
  ClusterView& cluster_;
  std::function<void(const RequestId&)> served_;
  std::map<sched::Shape, sched::Answers> waiting_;
  // The decision that is being made, portion by portion.
  struct Round {
    std::optional<sched::ServiceOrder> after = {};        // absent: nothing has been considered
    std::map<sched::Shape, sched::Answers> waiting = {};  // so far
  };
  Round round_;
  bool has_news_ = true;         // something has changed since the round began
  SteadyTime next_decision_{};   // not before
  bool is_registry_old_ = true;  // something has registered, changed or left since it was built
  WaitLog wait_log_;
  // Requests whose decision is being carried out, with the version it is based on.
  std::map<RequestId, std::int64_t> under_way_;
  Promises promises_;
  WakeLoop deciding_;
  TaskGroup tasks_;
  std::vector<Subscription> subscriptions_;
};

}  // namespace nodepool::launcher
