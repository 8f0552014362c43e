#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "async/attempt.h"
#include "async/task_group.h"
#include "driver/provider.h"
#include "launcher/pool.h"

namespace nodepool::launcher {

// A provider with its part in one request.
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

  // The labels of `wanted` without a node, be it on its way.
  std::vector<LabelName> Missing(const std::vector<LabelName>& wanted) const;
  bool IsComplete(const std::vector<LabelName>& wanted) const;
  bool AnyFailed() const;
  std::ptrdiff_t ready_count() const;
  bool is_launching() const { return launches_.size() > 0; }
  // The nodes in the order of `labels`, which it is complete for.
  std::vector<NodeId> InOrder(const std::vector<LabelName>& labels) const;
  std::vector<store::LockedNode*> Locked();
  // Nodes that could not be had.
  RejectedNodes& rejected() { return rejected_; }
  const RejectedNodes& rejected() const { return rejected_; }

  // A provider that replaces another one hears of the nodes that there are.
  void Announce(DriverSide& driver) const;

  // Claims free nodes that Reuse() is about to be called for.
  void Claim(const std::vector<sched::FillPlan::Reuse>& reuses);
  // Takes a node for the request, which becomes pending with its first one, or rejects it.
  Task<> Reuse(sched::FillPlan::Reuse reuse, std::shared_ptr<DriverSide> driver,
               store::LockedRequest& request);

  // Begins to launch `node`, a record that is to be created.
  void Launch(Node node, const Resources& need, std::shared_ptr<DriverSide> driver);
  // Keeps capacity for launches that begin when the reuse of free nodes is settled.
  void Keep(const Resources& need) { kept_.emplace_back(context_.ledger, pool_.key(), need); }
  // How many were kept.
  std::size_t FreeKept();
  // A node refused for quota costs no attempt: it is unlocked, the deleted-node worker removes it, and
  // another one is launched when there is capacity. Returns how many there were.
  Task<int> DropRefused();

  // The nodes belong to the client now.
  void HandedOver();
  // Healthy nodes become free, the others are found unlocked and deleted.
  Task<> Release(RequestId request);

  // Ends when the cache shows all nodes that were launched: each counts from the decision on,
  // whatever has become of it.
  Task<> UntilShown();
  // Ends the launches. What the cache does not show counts no more.
  Task<> Stop();

 private:
  struct Slot {
    enum class State { kLaunching, kReady, kFailed, kRefused };
    LabelName label;
    State state;
    std::optional<store::LockedNode> node;
    std::optional<Reservation> launch;  // nullopt: the node was there
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
  std::vector<Reservation> kept_;
  std::vector<Reservation> ended_;      // of former slots
  std::map<NodeId, NodeClaim> claims_;  // free nodes about to be tried
  RejectedNodes rejected_;
  TaskGroup launches_;
};

}  // namespace nodepool::launcher
