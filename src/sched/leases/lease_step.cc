#include "sched/leases/lease_step.h"

#include <algorithm>

namespace nodepool::sched {
namespace {

LeaseStep StepOfWaiting(const Lease& lease, const NodeRequest* request) {
  if (lease.request.empty()) return LeaseStep::kNoteRequest;
  if (request == nullptr || request->state == RequestState::kFailed) return LeaseStep::kFail;
  return request->state == RequestState::kFulfilled ? LeaseStep::kTake : LeaseStep::kNone;
}

// A copy in memory may still show the node as it was before the lease had it.
bool IsLost(const Node* node) {
  return node == nullptr || (node->state != NodeState::kInUse && node->state != NodeState::kReady);
}

}  // namespace

LeaseStep NextStep(const Lease& lease, const NodeRequest* request,
                   const std::function<const Node*(const NodeId&)>& node) {
  if (!lease.state) return LeaseStep::kNone;
  switch (*lease.state) {
    case LeaseState::kWaiting:
      return StepOfWaiting(lease, request);
    case LeaseState::kHeld: {
      bool has_lost = std::ranges::any_of(lease.nodes, [&](const NodeId& id) { return IsLost(node(id)); });
      return has_lost ? LeaseStep::kDropNodes : LeaseStep::kNone;
    }
    case LeaseState::kFailed:
      return LeaseStep::kNone;
    case LeaseState::kEnding:
      return LeaseStep::kEnd;
  }
  return LeaseStep::kNone;
}

}  // namespace nodepool::sched
