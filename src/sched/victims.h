#pragma once

#include <map>
#include <set>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "model/resources.h"

namespace nodepool::sched {

// A ready, unallocated, unlocked node of a pool at its limit.
struct UnusedNode {
  NodeId id;
  std::vector<LabelName> labels;
  WallTime ready_since{};
  Resources resources;
};

// Which unused nodes to delete so that a waiting request gets what it misses: the
// oldest first, only as many as needed, none with a label that somebody waits for
// (D-22). Empty when even all of them would not do.
std::vector<NodeId> ChooseVictims(std::vector<UnusedNode> unused, const Resources& shortage,
                                  const std::set<LabelName>& wanted_labels);

}  // namespace nodepool::sched
