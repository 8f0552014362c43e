#include "store/erase.h"

#include <fmt/format.h>

#include "base/text.h"
#include "store/paths.h"

namespace nodepool::store {
namespace {

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
  auto change = [now](Node& node) {
    node.SetState(NodeState::kDeleted, now);
    return Change::kWrite;
  };
  co_await store.UpdateUnlockedNode(id, change);
  co_await EraseTree(store, paths::Node(id));
}

}  // namespace nodepool::store
