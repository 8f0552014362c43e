#pragma once

#include <boost/json/value.hpp>
#include <functional>

#include "store/cache/cached_records.h"
#include "store/store.h"

namespace nodepool::driver {

// The records in ZooKeeper, as the cloud framework and drivers without a cloud of their own
// (static, metastatic) read and write them. An adapter of a cloud needs none of it. Everything
// outlives the provider.
struct RecordsEnvironment {
  store::Store& store;
  store::NodeCache& nodes;
  store::ImageCache& images;
  // Null: the provider makes no requests of its own.
  store::RequestCache* requests = nullptr;
  // Null: nothing is known of other programs.
  const store::ComponentRegistry* components = nullptr;
};

// Runs `change` on a node's record under its lock, if the node is free and no other client has the lock.
// Returns whether the record was written.
Task<bool> ChangeFreeNode(store::Store& store, NodeId id, std::function<store::Change(Node&)> change);

// Marks the node for deletion, if it is free, no other client has the lock, and its machine is still this
// one. Returns whether it did.
Task<bool> DeleteFreeNode(store::Store& store, NodeId id, boost::json::value external_id, WallTime now);

}  // namespace nodepool::driver
