#pragma once

#include <optional>

#include "store/store.h"

namespace nodepool::launcher {

// For clean-up: the lock may be gone with its session, or the node removed (nullopt).
inline Task<> UnlockIfHeld(std::optional<store::LockedNode>& node) {
  if (node && node->is_held()) co_await node->Unlock();
}

}  // namespace nodepool::launcher
