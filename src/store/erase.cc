#include "store/erase.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "store/node_deletion.h"
#include "store/paths.h"

namespace nodepool::store {
namespace {

// How often the deletion of a node is tried while other clients lock and write it.
constexpr int kErasures = 10;

Task<> EraseTree(Store& store, std::string path) {
  zk::Result<> removed = co_await zk::DeleteRecursive(store.tree.client(), path);
  if (removed || removed.error() == zk::Code::kNoNode) co_return;
  throw Error(Verdict::kConflict, fmt::format("deleting {}: {}", path, zk::ToString(removed.error())));
}

}  // namespace

Task<> EraseUploads(Store& store, ProviderName provider) {
  if (provider.value.empty() || provider.value.find('/') != std::string::npos) {
    throw Error(Verdict::kInvalid,
                fmt::format("\"{}\" is not the name of a provider", Excerpt(provider.value)));
  }
  std::vector<BuildKey> builds = co_await BuildsWith(store, provider);
  for (const BuildKey& build : builds)
    co_await EraseTree(store, paths::Providers(build) + "/" + provider.value);
}

Task<std::vector<BuildKey>> BuildsWith(Store& store, ProviderName provider) {
  std::vector<BuildKey> found;
  std::vector<ImageName> images = co_await store.images.List();
  for (const ImageName& image : images) {
    zk::Result<zk::Children> builds = co_await store.tree.client().GetChildren(paths::Builds(image));
    if (!builds) continue;
    for (const std::string& build : builds->names) {
      BuildKey key{image, BuildId(build)};
      zk::Result<zk::Children> providers = co_await store.tree.client().GetChildren(paths::Providers(key));
      bool is_there =
          providers && std::ranges::find(providers->names, provider.value) != providers->names.end();
      if (is_there) found.push_back(std::move(key));
    }
  }
  co_return found;
}

Task<std::vector<NodeId>> NodesOf(Store& store, ProviderName provider) {
  std::vector<NodeId> found;
  std::vector<NodeId> ids = co_await store.nodes.List();
  for (const NodeId& id : ids) {
    Outcome<std::optional<StoredNode>> node = co_await Attempt(store.nodes.Read(id));
    if (!node && !FailedWith(node, Verdict::kInvalid)) node.error().Rethrow();
    bool is_of_provider = node && *node && (*node)->record.provider == provider;
    if (is_of_provider) found.push_back(id);
  }
  co_return found;
}

Task<> EraseNode(Store& store, NodeId id, WallTime now) {
  for (int i = 0; i < kErasures; ++i) {
    std::optional<StoredNode> node = co_await store.nodes.Read(id);
    if (!node) co_return;
    std::vector<std::string> below = co_await ZnodesBelow(store.tree.client(), id);
    std::vector<zk::Op> ops = DeletionOf(*node, below, now);
    zk::MultiResult erased = co_await store.tree.client().Multi(std::move(ops));
    if (erased.ok()) co_return;
  }
  throw Error(Verdict::kConflict, fmt::format("node {}: other clients keep changing it; try again", id));
}

}  // namespace nodepool::store
