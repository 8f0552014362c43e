#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "async/backoff.h"
#include "async/task.h"
#include "async/task_group.h"
#include "base/clock.h"
#include "base/ids.h"
#include "driver/driver.h"
#include "launcher/pool.h"
#include "sched/requests/fill.h"

namespace nodepool::launcher {

// What the cloud has refused to a request, for quota or since it has no capacity, and how often; after each
// refusal the request pauses.
class Refusals {
 public:
  struct Refusal {
    sched::Refused what;
    bool lacks_capacity = false;  // and not quota
    std::string why = {};         // for operators
  };

  explicit Refusals(Random& random)
      : quota_pauses_({std::chrono::seconds(1), std::chrono::seconds(10)}, random),
        capacity_pauses_({std::chrono::seconds(1), std::chrono::seconds(60)}, random) {}

  // Refusals during a pause do not count: their launches began before it.
  void Add(Refusal refusal, SteadyTime now) {
    if (refusal.lacks_capacity && !lacks_capacity_since_) lacks_capacity_since_ = now;
    if (IsPausing(now)) return;
    pause_until_ = now + (refusal.lacks_capacity ? capacity_pauses_ : quota_pauses_).Next();
    what_ = std::move(refusal.what);
    ++count_;
  }
  void EndPause() { pause_until_ = {}; }
  bool IsPausing(SteadyTime now) const { return now < pause_until_; }
  SteadyTime pause_until() const { return pause_until_; }
  int count() const { return count_; }
  // The last one.
  const sched::Refused& what() const { return what_; }
  // Since when the cloud has had no capacity; none: it was never the reason.
  std::optional<SteadyTime> lacks_capacity_since() const { return lacks_capacity_since_; }

 private:
  Backoff quota_pauses_;
  Backoff capacity_pauses_;
  SteadyTime pause_until_{};
  int count_ = 0;
  sched::Refused what_;
  std::optional<SteadyTime> lacks_capacity_since_;
};

// A provider and its handler for one request.
struct DriverSide {
  std::shared_ptr<driver::Provider> provider;
  std::unique_ptr<driver::NodeRequestHandler> handler;
};

// The nodes of one request, locked, from their reuse or the decision to launch them until they are
// handed over or released (launcher.md 10.3, 10.4, 15.3). It owns the launches.
//
// What a crash leaves behind is found by the cleaners: unlocked nodes by DeletedNodeWorker,
// unlocked `init` nodes by CleanupWorker.
class NodeSet {
 public:
  // `pool` outlives it. `changed` is set when a launch has ended.
  NodeSet(Context& context, Pool& pool, Event& changed, log::Logger logger);

  // The labels of `wanted` that have no node, not even one on its way.
  std::vector<LabelName> Missing(const std::vector<LabelName>& wanted) const;
  bool IsComplete(const std::vector<LabelName>& wanted) const;
  bool AnyFailed() const;
  // Why the last launch failed, for operators.
  std::string LastFault() const;
  std::ptrdiff_t ready_count() const;
  bool is_launching() const { return launches_.size() > 0; }
  // Whether there is no node, not even one on its way.
  bool empty() const { return slots_.empty() && !is_launching(); }
  // The nodes in the order of `labels`; every label must have one.
  std::vector<NodeId> InOrder(const std::vector<LabelName>& labels) const;
  std::vector<store::LockedNode*> Locked();
  // Free nodes that could not be taken.
  RejectedNodes& rejected() { return rejected_; }
  const RejectedNodes& rejected() const { return rejected_; }

  // Announces the existing nodes to the handler of a provider that replaces another one.
  void Announce(DriverSide& driver) const;

  // Claims free nodes that Reuse() is about to be called for.
  void Claim(const std::vector<sched::FillPlan::Reuse>& reuses);
  // Takes a node for the request, or rejects it; the request becomes pending with its first node.
  Task<> Reuse(sched::FillPlan::Reuse reuse, std::shared_ptr<DriverSide> driver,
               store::LockedRequest& request);

  // Begins to launch `node`; its record is created first.
  void Launch(Node node, const Resources& need, std::shared_ptr<DriverSide> driver);
  // Reserves capacity for launches that begin once the reuse of free nodes is settled.
  void Reserve(const Resources& need) { reservations_.emplace_back(context_.ledger, pool_.key(), need); }
  // Releases what Reserve() has reserved; returns how many reservations there were.
  std::size_t ReleaseReservations();
  // What was refused since the last call; none: nothing. The nodes are dropped: DeletedNodeWorker removes
  // them, and others are launched when there is capacity.
  Task<std::optional<Refusals::Refusal>> DropRefused();

  // The nodes belong to the client now: gives up their locks.
  void HandedOver();
  // Unlocks the nodes: healthy ones become free, DeletedNodeWorker deletes the others.
  Task<> Release(RequestId request);

  // Ends when the cache shows all nodes that were launched. Until then, each is counted from its decision on,
  // whatever has become of it.
  Task<> AwaitInCache();
  // Cancels the launches. Nodes that the cache does not show no longer count.
  Task<> Stop();

 private:
  struct Slot {
    enum class State { kLaunching, kReady, kFailed, kRefused };
    LabelName label;
    State state;
    std::optional<store::LockedNode> node;
    std::optional<Reservation> launch;  // nullopt: the node existed already
    Refusals::Refusal refusal = {};     // if it was refused
  };

  Task<bool> Allocate(store::LockedNode& node, store::LockedRequest& request);
  Task<> CatchUp();
  Task<> RunLaunch(std::shared_ptr<Slot> slot, Node node, std::shared_ptr<DriverSide> driver);
  Task<> CreateAndLaunch(std::shared_ptr<Slot> slot, Node node, std::shared_ptr<DriverSide> driver);
  Task<> Failed(std::shared_ptr<Slot> slot, Failure failure);
  void LaunchEnded(Slot& slot);
  Task<> ReleaseOne(Slot& slot, RequestId request);
  log::Logger About(const std::optional<NodeId>& node) const;

  Context& context_;
  Pool& pool_;
  Event& changed_;
  log::Logger logger_;
  std::vector<std::shared_ptr<Slot>> slots_;
  std::vector<Reservation> reservations_;
  std::vector<Reservation> ended_;      // of former slots
  std::map<NodeId, NodeClaim> claims_;  // free nodes about to be tried
  RejectedNodes rejected_;
  std::string last_fault_;
  TaskGroup launches_;
};

// Deletes unused nodes for requests of a pool that wait for capacity (D-22).
class UnusedNodes {
 public:
  // `pool` outlives it.
  UnusedNodes(Context& context, const Pool& pool);

  struct Deletion {
    std::vector<NodeId> nodes;           // that are being deleted
    bool are_all = false;                // after a refusal: there were fewer than wanted
    std::optional<SteadyTime> again_at;  // nodes were deleted too recently to delete more before this
  };
  // Deletes the nodes whose resources `plan` lacks; after a refusal, which does not say how much is lacking,
  // `after_refusal` nodes.
  Deletion DeleteFor(const sched::FillPlan& plan, std::size_t after_refusal);
  void CancelAll() { tasks_.CancelAll(); }
  Task<> Join() { return tasks_.Join(); }
  Task<> Stop() { return tasks_.Stop(); }

 private:
  std::vector<NodeId> Choose(const sched::FillPlan& plan, std::size_t after_refusal) const;
  std::vector<sched::UnusedNode> UnusedIn(const PoolKey& pool) const;
  Task<> Delete(NodeId id, NodeClaim claim);

  Context& context_;
  const Pool& pool_;
  log::Logger logger_;
  // Apart: what was deleted for the pool's limit says nothing about what the cloud refuses.
  SteadyTime next_for_limits_{};
  SteadyTime next_after_refusal_{};
  TaskGroup tasks_;
};

}  // namespace nodepool::launcher
