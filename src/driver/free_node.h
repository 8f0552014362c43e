#pragma once

#include <functional>

#include "store/store.h"

namespace nodepool::driver {

// Runs `change` on a node's record under its lock, if the node is free and no other client has the lock.
// Returns whether the record was written.
Task<bool> ChangeFreeNode(store::Store& store, NodeId id, std::function<store::Change(Node&)> change);

}  // namespace nodepool::driver
