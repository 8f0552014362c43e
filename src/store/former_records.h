#pragma once

#include "store/cache/image_cache.h"
#include "store/store.h"

// Whether a missing record existed in this tree once (D-99). ZooKeeper counts the children that a
// znode ever had, so the tree itself shows which numbers it has assigned: a tree that was lost, or
// restored from an older state, does not claim records it never had. Nothing is written for it.
namespace nodepool::store {

// Whether the build began in this tree: its znode is older than the build's end. The znode of a
// build that import-image-data or `nodepool migrate` created is younger, and this tree does not
// know what happened to its uploads before.
bool IsMadeHere(const StoredBuild& build);

// Whether an upload of this number had a record in this tree, under a build for which IsMadeHere,
// and has none now. A record that cannot be read counts as a record. The three names come from a
// cloud and may be any text.
Task<bool> WasUploadRemoved(Store& store, const ImageCache& images, BuildId build, ProviderName provider,
                            UploadId upload);

// Whether a node of this id had a record in this tree and has none now. `node` may be any text.
Task<bool> WasNodeRemoved(Store& store, NodeId node);

}  // namespace nodepool::store
