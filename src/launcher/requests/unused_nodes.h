#pragma once

#include <optional>
#include <vector>

#include "async/task_group.h"
#include "launcher/pool.h"
#include "sched/requests/victims.h"

namespace nodepool::launcher {

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
  SteadyTime next_deletion_{};
  TaskGroup tasks_;
};

}  // namespace nodepool::launcher
