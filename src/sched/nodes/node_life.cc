#include "sched/nodes/node_life.h"

#include <algorithm>
#include <cstdint>

namespace nodepool::sched {

bool IsGarbageWhenUnlocked(NodeState state) {
  switch (state) {
    case NodeState::kUsed:
    case NodeState::kInUse:
    case NodeState::kBuilding:
    case NodeState::kFailed:
    case NodeState::kDeleting:
    case NodeState::kDeleted:
    case NodeState::kAborted:
      return true;
    case NodeState::kInit:
    case NodeState::kTesting:
    case NodeState::kReady:
    case NodeState::kHold:
      return false;
  }
  return false;
}

bool IsPastReadyAge(const Node& node,
                    const std::function<std::optional<Duration>(const LabelName&)>& max_ready_age,
                    WallTime now) {
  return node.is_free() && std::ranges::any_of(node.type, [&](const LabelName& label) {
           std::optional<Duration> limit = max_ready_age(label);
           return limit && now - node.state_time >= *limit;
         });
}

bool IsPastHoldAge(const Node& node, std::optional<Duration> max_hold_age, WallTime now) {
  if (node.state != NodeState::kHold) return false;
  std::optional<Duration> limit = max_hold_age;
  if (node.hold_expiration && *node.hold_expiration > 0) {
    // A year is longer than any hold and far from overflowing the clock.
    constexpr std::int64_t kYear = 366 * 24 * 3600;
    Duration own = std::chrono::seconds(std::min(*node.hold_expiration, kYear));
    limit = limit ? std::min(*limit, own) : own;
  }
  return limit && now - node.state_time >= *limit;
}

bool IsUnfinished(const Node& node, const NodeRequest* request, Duration limit, WallTime now) {
  if (node.state != NodeState::kInit) return false;
  if (now - node.state_time >= limit) return true;
  return request == nullptr || request->state != RequestState::kPending;
}

bool IsOwnerless(const Node& node, Duration limit, WallTime now) {
  bool is_dead = node.state && (*node.state == NodeState::kInit || IsGarbageWhenUnlocked(*node.state));
  return is_dead && node.provider.value.empty() && now - node.state_time >= limit;
}

}  // namespace nodepool::sched
