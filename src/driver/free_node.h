#pragma once

#include <boost/json/value.hpp>
#include <functional>

#include "store/store.h"

namespace nodepool::driver {

// Runs `change` on a node's record under its lock, if the node is free and no other client has the lock.
// Returns whether the record was written.
Task<bool> ChangeFreeNode(store::Store& store, NodeId id, std::function<store::Change(Node&)> change);

// Marks the node for deletion, if it is free, no other client has the lock, and its machine is still this
// one. Returns whether it did.
Task<bool> DeleteFreeNode(store::Store& store, NodeId id, boost::json::value external_id, WallTime now);

}  // namespace nodepool::driver
