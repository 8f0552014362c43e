#pragma once

#include <functional>
#include <optional>

#include "base/clock.h"
#include "model/node.h"
#include "model/node_request.h"

namespace nodepool::sched {

// Which nodes are to be deleted although nobody has asked for it (launcher.md 18, 22). All of this is about
// nodes that no process has locked.

// Whether an unlocked node in this state is garbage (launcher.md 18).
bool IsGarbageWhenUnlocked(NodeState state);

// Whether a free node is as old as one of its labels permits (launcher.md 22.4). `max_ready_age` returns the
// limit of a label, nullopt for none.
bool IsPastReadyAge(const Node& node,
                    const std::function<std::optional<Duration>(const LabelName&)>& max_ready_age,
                    WallTime now);

// Whether a node has been held for as long as it may be: for its own limit or `max_hold_age`, the smaller of
// both (launcher.md 22.5).
bool IsPastHoldAge(const Node& node, std::optional<Duration> max_hold_age, WallTime now);

// Whether nobody goes on with the launch of a node (launcher.md 22.8). `request` is the one that it is
// allocated to, null for none; `limit` is the age at which no request matters any more.
bool IsUnfinished(const Node& node, const NodeRequest* request, Duration limit, WallTime now);

// Another program that locks a node which was just removed creates its znode again, and may write its state,
// but knows neither provider nor machine (D-06). Whether this is such a record: dead, without a provider, and
// in its state for at least `limit` (launcher.md 22.9).
bool IsOwnerless(const Node& node, Duration limit, WallTime now);

}  // namespace nodepool::sched
