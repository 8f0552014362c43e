#pragma once

#include <cstddef>
#include <set>
#include <string_view>

#include "base/ids.h"
#include "store/cache/cached_records.h"
#include "store/store.h"

namespace nodepool::store {

// All records are below this path; for copying them to another server as a whole.
inline constexpr std::string_view kWholeTree = "/nodepool";

// How many records of each kind are among paths of the tree.
struct RecordCounts {
  std::size_t nodes = 0;
  std::size_t requests = 0;
  std::size_t builds = 0;
  std::size_t uploads = 0;
  std::set<ImageName> images;

  // The path of any znode.
  void Add(std::string_view path);
};

// `nodepool erase` (operations.md 5.8): deletes records without taking their locks, whoever uses
// them. May be repeated after a lost connection.

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

// Whether a missing record existed in this tree once (D-99). ZooKeeper counts the children that a
// znode ever had, so the tree itself shows which numbers it has assigned: a tree that was lost, or
// restored from an older state, does not claim records it never had. Nothing is written for it.

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
