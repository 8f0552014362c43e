#pragma once

#include "store/store.h"

// `nodepool erase` (operations.md 5.8): deletes records without taking their locks, whoever uses
// them. May be repeated after a lost connection.
namespace nodepool::store {

// Deletes all uploads to the provider, of every build; builds remain. Error(kInvalid): the name is
// impossible for a provider.
Task<> EraseUploads(Store& store, ProviderName provider);

// The builds that have something of the provider, even without an upload.
Task<std::vector<BuildKey>> BuildsWith(Store& store, ProviderName provider);

// The provider's nodes, as far as their records can be read.
Task<std::vector<NodeId>> NodesOf(Store& store, ProviderName provider);

// Deletes the node with all below it in one transaction. Error(kConflict): other clients keep
// changing it.
Task<> EraseNode(Store& store, NodeId id, WallTime now);

}  // namespace nodepool::store
