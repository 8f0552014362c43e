#pragma once

#include <optional>
#include <vector>

#include "async/task_group.h"
#include "launcher/pool.h"
#include "sched/requests/victims.h"

namespace nodepool::launcher {

// Deletes unused nodes for requests of a pool that miss capacity (D-22).
class UnusedNodes {
 public:
  // `pool` outlives it.
  UnusedNodes(Context& context, const Pool& pool);

  // Deletes what it takes for a request that misses what `plan` says. Returns when to call it
  // again, if nodes were deleted too lately to do so now.
  std::optional<SteadyTime> DeleteFor(const sched::FillPlan& plan);
  void CancelAll() { tasks_.CancelAll(); }
  Task<> Join() { return tasks_.Join(); }
  Task<> Stop() { return tasks_.Stop(); }

 private:
  std::vector<NodeId> Choose(const sched::FillPlan& plan) const;
  std::vector<sched::UnusedNode> UnusedIn(const PoolKey& pool) const;
  Task<> Delete(NodeId id, NodeClaim claim);

  Context& context_;
  const Pool& pool_;
  log::Logger logger_;
  SteadyTime next_deletion_{};
  TaskGroup tasks_;
};

}  // namespace nodepool::launcher
