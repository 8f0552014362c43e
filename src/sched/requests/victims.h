#pragma once

#include <cstddef>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "model/resources.h"

namespace nodepool::sched {

// A ready, unallocated, unlocked node that might be deleted for a waiting request.
struct UnusedNode {
  NodeId id;
  bool is_wanted = false;         // another request waits for a label of it
  bool is_of_other_pool = false;  // of the same provider
  WallTime ready_since{};
  Resources resources;
};

// Which unused nodes to delete so that a waiting request gets the missing capacity, only as many as
// needed: unwanted ones before wanted ones, then those of its own pool before others, then the
// oldest (D-22). Empty when even all of them are not enough.
std::vector<NodeId> ChooseVictims(std::vector<UnusedNode> unused, const Resources& shortage);

// The same where it is not known how much is missing: the first `count`, or all, that have any of the
// resources.
std::vector<NodeId> ChooseSome(std::vector<UnusedNode> unused, const Resources& needed, std::size_t count);

}  // namespace nodepool::sched
