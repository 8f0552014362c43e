#pragma once

#include "store/store.h"

// What `nodepool erase` does (operations.md 5.8): records go whoever works with them, without
// their locks. May be repeated when the connection was lost meanwhile.
namespace nodepool::store {

// All uploads to the provider, of every build; builds stay. Error(kInvalid): no provider can
// have this name.
Task<> EraseUploads(Store& store, ProviderName provider);

// Of the nodes whose record can be read.
Task<std::vector<NodeId>> NodesOf(Store& store, ProviderName provider);

// The node with all below it, in one transaction. Error(kConflict): others keep changing it.
Task<> EraseNode(Store& store, NodeId id, WallTime now);

}  // namespace nodepool::store
