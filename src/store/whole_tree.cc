#include "store/whole_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "store/record_kinds.h"
#include "store/transaction.h"
#include "zk/znode.h"

namespace nodepool::store {

namespace {

bool IsBelow(std::string_view root, std::string_view path) {
  return path.size() > root.size() && path.starts_with(root) && path[root.size()] == '/';
}

}  // namespace

void RecordCounts::Add(std::string_view path) {
  if (IsBelow(paths::kNodes, path)) {
    if (paths::ParseBelowNodes(path).part == paths::BelowNodes::Part::kRecord) ++nodes;
  } else if (IsBelow(paths::kRequests, path)) {
    if (paths::ParseRequest(path)) ++requests;
  } else if (IsBelow(paths::kImages, path)) {
    paths::BelowImages place = paths::ParseBelowImages(path);
    if (!place.key.build.image.empty()) images.insert(place.key.build.image);
    if (place.part == paths::BelowImages::Part::kBuild) ++builds;
    if (place.part == paths::BelowImages::Part::kUpload) ++uploads;
  }
}

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

namespace {

// The names of nodes and uploads have the same form.
std::optional<std::int64_t> NumberOf(const std::string& name) {
  if (!paths::IsUploadId(name)) return std::nullopt;
  std::int64_t number = 0;
  std::from_chars(name.data(), name.data() + name.size(), number);
  return number;
}

// The counter is read before the record: a record that is not yet visible on another server of the
// ensemble was not counted there either.
Task<bool> WasRemoved(Store& store, std::string directory, std::string name) {
  std::optional<std::int64_t> number = NumberOf(name);
  if (!number) co_return false;
  zk::Result<zk::Stat> parent = co_await store.tree.client().Exists(directory);
  if (!parent || *number >= zk::ChildrenEverCreated(*parent)) co_return false;
  zk::Result<zk::Stat> record = co_await store.tree.client().Exists(directory + "/" + name);
  co_return !record;
}

}  // namespace

bool IsMadeHere(const StoredBuild& build) { return build.revision.created < build.record.state_time; }

Task<bool> WasUploadRemoved(Store& store, const ImageCache& images, BuildId build, ProviderName provider,
                            UploadId upload) {
  std::vector<BuildKey> keys;
  for (const auto& [key, stored] : images.builds()) {
    if (key.build != build) continue;
    if (!IsMadeHere(stored)) co_return false;
    keys.push_back(key);
  }
  // Builds from before 2023 are numbered, starting from the beginning for each image.
  bool was_removed = !keys.empty();
  for (const BuildKey& key : keys) {
    bool was_here = co_await WasRemoved(store, paths::Uploads(key, provider), upload.value);
    was_removed = was_removed && was_here;
  }
  co_return was_removed;
}

Task<bool> WasNodeRemoved(Store& store, NodeId node) {
  co_return co_await WasRemoved(store, std::string(paths::kNodes), node.value);
}

}  // namespace nodepool::store
