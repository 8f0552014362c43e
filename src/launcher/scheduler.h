#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "async/task_group.h"
#include "base/subscription.h"
#include "launcher/pool_worker.h"
#include "launcher/promises.h"
#include "launcher/wait_log.h"
#include "sched/assign.h"
#include "sched/queues.h"

namespace nodepool::launcher {

// The main street's crossing: whenever requests, nodes, components or capacity
// changed it asks sched::Assign what to do and has the pools do it. Changes that
// come together are answered together. Nothing is decided before the caches are
// complete and every own pool is visible in the registry (launcher.md 5).
class Scheduler {
 public:
  explicit Scheduler(Context& context);
  ~Scheduler();  // call Stop() first

  // The pools to schedule for; they outlive the scheduler's run.
  void SetPools(std::vector<PoolWorker*> pools);
  void Start();
  // No more decisions; declines under way are finished or given up.
  Task<> Stop();

  // Something may have changed; cheap, decided on later in one go.
  void Wake() { wake_.Set(); }
  // The handler of the request has ended.
  void HandlerEnded(const RequestId& id);

  const sched::Registry& registry() const { return registry_; }
  // Labels of which some request in line would take a free node.
  std::set<LabelName> WantedLabels() const;
  // What each pool last said about waiting requests, by shape.
  const std::map<sched::Shape, sched::Answers>& waiting() const { return plan_.waiting; }

 private:
  Task<> Run();
  bool IsReady() const;
  void RunOnce();
  bool IsProviderAtFault() const;
  Task<> ProbeLater();
  sched::Snapshot TakeSnapshot() const;
  void CarryOut(const sched::Plan::Acceptance& acceptance);
  void CarryOut(const sched::Plan::Declination& declination);
  Task<> Decline(RequestId id, sched::Answers by);
  Task<> Reconsider(RequestId id, std::int64_t seen_mzxid);
  void RequestChanged(const RequestId& id, const store::StoredRequest* after);
  void RebuildRegistry();
  void CloudRefused(const ProviderName& provider);

  Context& context_;
  log::Logger logger_;
  std::vector<PoolWorker*> pools_;
  sched::Registry registry_;
  sched::Queues queues_;
  sched::Plan plan_;
  WaitLog wait_log_;
  // Requests that a decision is being carried out for, with the version it rests on.
  std::map<RequestId, std::int64_t> under_way_;
  Promises promises_;
  Event wake_{"something to decide"};
  bool is_probe_due_ = false;
  TaskGroup tasks_;
  std::vector<Subscription> subscriptions_;
};

}  // namespace nodepool::launcher
