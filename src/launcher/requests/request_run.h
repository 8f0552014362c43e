#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "async/task_group.h"
#include "launcher/requests/node_set.h"

namespace nodepool::launcher {

// One request from acceptance to its end: takes or launches its nodes, then
// fulfils it, declines it or gives it back (launcher.md 10, 11).
//
// A request that a crash leaves unlocked is found by LostRequests.
class RequestRun {
 public:
  // `pool` and `unused_nodes` outlive it. The probe of a breaker is not left to other pools.
  RequestRun(Context& context, Pool& pool, UnusedNodes& unused_nodes, store::StoredRequest seen,
             sched::ServiceOrder order, bool is_probe);

  // Ends when this pool is done with the request. When cancelled, it gives the request back as `requested`,
  // unless the session is gone (D-24). Throws nothing but kCancelled.
  Task<> Run();

  // Call when the provider came up or another configuration is in force.
  void Wake() { changed_.Set(); }
  // The client deleted the request.
  void RequestGone();
  // The pool is being removed: nothing new is begun, running launches finish. If they
  // complete the request it is fulfilled, else given back.
  void Drain();

  const RequestId& id() const { return seen_.id; }
  // What it waits for, or null.
  const sched::FillPlan* waits_for() const;

 private:
  Task<> Serve();
  // Does what can be done now; returns whether the run is over.
  Task<bool> Step();
  Task<> NextChange();
  void WakeAt(SteadyTime when) { due_ = std::min(due_, when); }

  Task<> Accept();
  Task<bool> GiveUpIfPointless(sched::Decision decision);
  bool FollowProvider();
  bool IsLeftByBreaker() const;
  bool IsDeadlocked();
  bool EarlierRequestIsHeldUp() const;
  void Plan();
  void CarryOut(const sched::PoolView& view);
  void NoteRefusal(Refusals::Refusal refusal);
  bool OthersCanServe() const;
  void PauseAfterRefusal(const sched::PoolView& view);
  void MarkRefused();
  void TryWithFreedNodes();
  bool AreGone(const std::vector<NodeId>& nodes) const;
  void AskWhatOthersUse(const sched::PoolView& view);
  void DeleteUnusedNodes();
  bool IsMinReady() const;
  bool IsHopelessMinReady() const;
  Node NewNode(const LabelName& label) const;
  void ShowWaiting(bool is_waiting);

  Task<> Fulfil();
  Task<> Decline(std::string reason);
  Task<> GiveBack();
  Task<> RequestIsGone();
  Task<> LetGo(const Failure& failure);

  Context& context_;
  Pool& pool_;
  UnusedNodes& unused_nodes_;
  store::StoredRequest seen_;
  sched::ServiceOrder order_;
  log::Logger logger_;
  Event changed_{"capacity or nodes"};
  std::optional<store::LockedRequest> request_;
  std::shared_ptr<DriverSide> driver_;
  NodeSet nodes_;
  sched::FillPlan plan_;
  Refusals refusals_;
  // Unused nodes that are deleted since the cloud refused something that it did not name. What they free is
  // this request's own until it has tried again; else min-ready nodes would take it each time.
  struct Freed {
    std::vector<NodeId> nodes;
    std::set<std::string> resources;
    SteadyTime until;        // it is kept no longer, however long the deletion takes
    bool are_all;            // that there were
    bool has_tried = false;  // since they were gone
  };
  std::optional<Freed> freed_;
  int deletions_in_vain_ = 0;   // after which the cloud refused again
  SteadyTime spares_unused_{};  // until then none is deleted after a refusal: all were, in vain
  sched::Progress progress_;
  SteadyTime ask_at_ = SteadyTime::max();  // again for what others use
  SteadyTime due_ = SteadyTime::max();     // when the next step is due, even if nothing changes
  std::optional<std::string> given_up_;    // for lack of capacity: the reason of the decline
  const bool is_probe_;
  bool is_gone_ = false;
  bool is_draining_ = false;
};

// A pool of this launcher with the requests that it has accepted.
class PoolWorker {
 public:
  PoolWorker(Context& context, const ProviderManager& providers, const ClusterView& cluster,
             std::shared_ptr<const driver::ProviderConfig> provider_config,
             std::shared_ptr<const driver::PoolConfig> config, const std::string& fqdn);
  ~PoolWorker();  // call Stop() first

  // Announces the pool; ends when its component record is written.
  Task<> Start();
  // Gives accepted requests back and removes the component record.
  Task<> Stop();
  // The pool is no longer configured: removes its component record at once, begins nothing new and ends when
  // running launches have finished and no request is held (D-24).
  Task<> Drain();
  // Puts another configuration in force and checks accepted requests against it.
  void Configure(std::shared_ptr<const driver::ProviderConfig> provider_config,
                 std::shared_ptr<const driver::PoolConfig> config);
  // The locks of all accepted requests are gone: drops the requests.
  void SessionLost();

  const Pool& pool() const { return pool_; }
  const PoolKey& key() const { return pool_.key(); }
  // Whether Start() has ended.
  bool is_started() const { return is_started_; }

  // `standing` is that of the decision; `ended` is called when the request is no longer worked on.
  void Accept(store::StoredRequest request, sched::ServiceOrder order, sched::Standing standing,
              std::function<void()> ended);
  // As the pool's (pool.h).
  void AnnounceFaults() { pool_.AnnounceFaults(); }
  // Lets waiting requests plan again, in service order.
  void CapacityChanged() { pool_.waiting().WakeAll(); }
  // Lets all requests plan again: the provider came up.
  void ProviderChanged();
  // The client deleted the request.
  void RequestGone(const RequestId& id);

  std::size_t request_count() const { return runs_.size(); }
  // The run of an accepted request, or null.
  const RequestRun* FindRun(const RequestId& id) const;

 private:
  Task<> RunToEnd(std::shared_ptr<RequestRun> run, std::function<void()> ended);

  Context& context_;
  Pool pool_;
  UnusedNodes unused_nodes_;
  log::Logger logger_;
  std::map<RequestId, std::shared_ptr<RequestRun>> runs_;
  bool is_started_ = false;
  TaskGroup tasks_;
};

}  // namespace nodepool::launcher
