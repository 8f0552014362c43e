#pragma once

#include "store/cache/image_cache.h"
#include "store/store.h"

// Whether a record that is missing was here once (D-99). ZooKeeper counts the children that a
// znode ever had, so the tree itself tells which numbers it gave: one that was lost, or put back
// to an older state, does not claim what it never knew. Nothing is written for it.
namespace nodepool::store {

// Whether the build began in this tree: its znode is older than its end. That of one which
// import-image-data or `nodepool migrate` brought is younger, and what happened to its uploads
// before is not known here.
bool IsMadeHere(const StoredBuild& build);

// Whether an upload of this number had a record here, under a build that IsMadeHere, and has none
// now. A record that cannot be read is a record. The three names come from a cloud and may be any
// text.
Task<bool> WasUploadRemoved(Store& store, const ImageCache& images, BuildId build, ProviderName provider,
                            UploadId upload);

// Whether a node of this id had a record here and has none now. `node` may be any text.
Task<bool> WasNodeRemoved(Store& store, NodeId node);

}  // namespace nodepool::store
