#pragma once

#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "async/backoff.h"
#include "async/task_group.h"
#include "driver/provider.h"
#include "launcher/context.h"
#include "launcher/ledger.h"
#include "sched/assign.h"
#include "sched/fill.h"

namespace nodepool::launcher {

class Handler;

// What a handler needs of its pool. Implemented by PoolWorker.
class HandlerHost {
 public:
  virtual ~HandlerHost() = default;
  virtual const PoolKey& key() const = 0;
  virtual const LauncherId& launcher_id() const = 0;
  virtual std::shared_ptr<driver::Provider> provider() const = 0;  // null: not running now
  virtual std::shared_ptr<const driver::PoolConfig> pool_config() const = 0;
  // Or its nodes are there already.
  virtual bool launches_nodes() const = 0;
  // The pool as it is for a request of this place in the order: what requests
  // before it wait for is reserved.
  virtual sched::PoolView ViewFor(const sched::ServiceOrder& order) const = 0;
  // Whether the pool would decline the request now, e.g. after a lowered limit.
  virtual sched::Decision StillAcceptable(const NodeRequest& request) const = 0;
  // Whether everybody has declined when `declined_by` of the request is complete.
  virtual bool AllDeclined(const NodeRequest& request) const = 0;
  // The handler began or ceased to wait for capacity, or misses something else now.
  virtual void WaitingChanged(Handler& handler) = 0;
  // A launch of the provider has ended: others may have their turn.
  virtual void LaunchEnded() = 0;
  // The handler does not need after all what it had kept for itself.
  virtual void CapacityFreed() = 0;
  // The handler misses capacity: unused nodes may be sacrificed for it (D-22).
  virtual void MakeRoom(const sched::FillPlan& plan) = 0;
};

// One request from acceptance to its end: takes or launches its nodes, then
// fulfils it, declines it or gives it back (launcher.md 10, 11).
//
// It owns its launches. What a crash leaves behind at each step is found by the
// cleaners: the unlocked request by LostRequests, unlocked nodes by
// DeletedNodeWorker, unlocked `init` nodes by CleanupWorker.
class Handler {
 public:
  Handler(Context& context, Ledger& ledger, HandlerHost& host, store::StoredRequest seen,
          sched::ServiceOrder order);
  ~Handler();
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;

  // Ends when the request is out of our hands. Told to stop, it gives the request
  // back as `requested`, unless the session is gone (D-24). Never throws but kCancelled.
  Task<> Run();

  // Something changed that may matter to a waiting handler.
  void Wake() { changed_.Set(); }
  // The client deleted the request.
  void RequestGone();
  // The pool is being removed: nothing new is begun, running launches finish. If they
  // complete the request it is fulfilled, else given back.
  void Drain();

  const RequestId& id() const { return seen_.id; }
  const sched::ServiceOrder& order() const { return order_; }
  bool is_waiting() const { return is_waiting_; }
  // The labels it waits for of which it would take a free node.
  std::vector<LabelName> LabelsToReuse() const;
  // Whether it would take this free node, which is of such a label.
  bool MayTake(const NodeId& node) const { return !IsRejected(node); }
  const std::vector<LabelName>& labels() const { return seen_.record.node_types; }
  // What it misses while it waits.
  const sched::FillPlan& plan() const { return announced_; }

 private:
  // One node of the set on its way.
  struct Slot {
    enum class State { kLaunching, kReady, kFailed, kAborted };
    LabelName label;
    State state = State::kLaunching;
    std::optional<store::LockedNode> node;
    Ledger::EntryId entry = 0;  // of its launch; 0: it was ready
  };

  // The provider with its part in the request. Launches keep the one they began with.
  struct DriverSide {
    std::shared_ptr<driver::Provider> provider;
    std::unique_ptr<driver::NodeRequestHandler> handler;
  };

  Task<> Serve();
  Task<> UntilNodesAreShown();
  Task<> CatchUpWithNodes();
  Task<> Accept();
  Task<bool> BecomePending();
  void ProbeLater();
  Task<bool> GiveUpIfPointless(sched::Decision decision);
  bool FollowProvider();
  bool IsDeadlocked();
  bool EarlierRequestIsHeldUp() const;
  void PlanNext();
  void KeepForLaunches(const sched::PoolView& view);
  std::size_t FreeKept();
  Task<> TryReuse(sched::FillPlan::Reuse reuse);
  Task<bool> Allocate(store::LockedNode& node);
  void Reject(const NodeId& node);
  bool IsRejected(const NodeId& node) const;
  void StartLaunch(const LabelName& label, const Resources& need);
  Task<> LaunchSlot(std::shared_ptr<Slot> slot, std::shared_ptr<DriverSide> driver);
  Task<> CreateAndLaunch(std::shared_ptr<Slot> slot, std::shared_ptr<DriverSide> driver);
  Task<> MarkEnded(std::shared_ptr<Slot> slot, NodeState state);
  Node NewNode(const LabelName& label) const;
  Task<> DropAborted();
  bool AnyFailed() const;
  bool IsComplete() const;
  void SetWaiting(bool is_waiting);
  bool IsMinReadyInVain() const;
  Task<> WakeAt(SteadyTime when);

  Task<> Fulfil();
  Task<> Decline(std::string reason);
  Task<> GiveBack();
  Task<> ReleaseNodes();

  Context& context_;
  Ledger& ledger_;
  HandlerHost& host_;
  store::StoredRequest seen_;
  sched::ServiceOrder order_;
  log::Logger logger_;
  std::shared_ptr<DriverSide> driver_;
  std::optional<store::LockedRequest> request_;
  std::vector<std::shared_ptr<Slot>> slots_;
  std::vector<Ledger::EntryId> entries_;   // of all launches, released at the end
  std::vector<Ledger::EntryId> kept_;      // of those that begin when the reuse of ready nodes is settled
  std::map<NodeId, NodeClaim> claims_;     // free nodes about to be tried
  std::map<NodeId, SteadyTime> rejected_;  // free nodes that could not be had, left alone until then
  sched::FillPlan plan_;
  sched::FillPlan announced_;  // the plan as the pool was last told of
  Event changed_{"capacity or nodes"};
  Backoff refusal_backoff_;
  std::optional<SteadyTime> refused_until_;
  int refusals_ = 0;
  // Since when it has so many ready nodes, and when it looks whether to make way.
  std::ptrdiff_t ready_ = 0;
  SteadyTime progress_at_{};
  SteadyTime yield_at_{};
  SteadyTime probe_at_{};
  bool is_waiting_ = false;
  bool is_gone_ = false;
  bool is_draining_ = false;
  TaskGroup launches_;
  TaskGroup timers_;
};

}  // namespace nodepool::launcher
