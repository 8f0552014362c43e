#include "store/former_records.h"

#include <charconv>

#include "store/paths.h"
#include "zk/types.h"

namespace nodepool::store {
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
