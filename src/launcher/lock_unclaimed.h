#pragma once

#include <optional>

#include "launcher/context.h"
#include "store/locked_record.h"

namespace nodepool::launcher {

// Locks a node for a short while. None: another process has it locked, or a part of this launcher has claimed
// it.
//
// The node counts as claimed until the lock is there or refused: otherwise a request of this launcher could
// take the node meanwhile, and hand it out with this attempt still queued at its lock. The context outlives
// the call.
Task<std::optional<store::LockedNode>> LockUnclaimed(Context& context, NodeId id);

}  // namespace nodepool::launcher
