#include "store/erase.h"

#include <fmt/format.h>

#include "base/text.h"
#include "store/node_deletion.h"
#include "store/paths.h"

namespace nodepool::store {
namespace {

// How often the deletion of a node is tried while others lock and write it.
constexpr int kErasures = 10;

Task<> EraseTree(Store& store, std::string path) {
  zk::Result<> removed = co_await zk::DeleteRecursive(store.client(), path);
  if (removed || removed.error() == zk::Code::kNoNode) co_return;
  throw Error(Verdict::kConflict, fmt::format("deleting {}: {}", path, zk::ToString(removed.error())));
}

}  // namespace

Task<> EraseUploads(Store& store, ProviderName provider) {
  if (provider.value.empty() || provider.value.find('/') != std::string::npos) {
    throw Error(Verdict::kInvalid, fmt::format("\"{}\" is no name of a provider", Excerpt(provider.value)));
  }
  std::vector<ImageName> images = co_await store.ListImages();
  for (const ImageName& image : images) {
    zk::Result<zk::Children> builds = co_await store.client().GetChildren(paths::Builds(image));
    if (!builds) continue;
    for (const std::string& build : builds->names) {
      BuildKey key{image, BuildId(build)};
      co_await EraseTree(store, paths::Providers(key) + "/" + provider.value);
    }
  }
}

Task<std::vector<NodeId>> NodesOf(Store& store, ProviderName provider) {
  std::vector<NodeId> found;
  std::vector<NodeId> ids = co_await store.ListNodes();
  for (const NodeId& id : ids) {
    try {
      std::optional<StoredNode> node = co_await store.ReadNode(id);
      if (node && node->record.provider == provider) found.push_back(id);
    } catch (const Error& error) {
      if (error.verdict() != Verdict::kInvalid) throw;
    }
  }
  co_return found;
}

Task<> EraseNode(Store& store, NodeId id, WallTime now) {
  for (int i = 0; i < kErasures; ++i) {
    std::optional<StoredNode> node = co_await store.ReadNode(id);
    if (!node) co_return;
    std::vector<std::string> below = co_await ZnodesBelow(store.client(), id);
    std::vector<zk::Op> ops = DeletionOf(*node, below, now);
    zk::MultiResult erased = co_await store.client().Multi(std::move(ops));
    if (erased.ok()) co_return;
  }
  throw Error(Verdict::kConflict, fmt::format("node {}: others keep changing it; try again", id));
}

}  // namespace nodepool::store
