#pragma once

#include <optional>

#include "store/store.h"

namespace nodepool::launcher {

// For clean-up: tolerates a lock that is gone with its session and a removed node (nullopt).
inline Task<> UnlockIfHeld(std::optional<store::LockedNode>& node) {
  if (node && node->is_held()) co_await node->Unlock();
}

}  // namespace nodepool::launcher
