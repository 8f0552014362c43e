#include "store/image_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "store/record_kinds.h"

namespace nodepool::store {

namespace {

using Part = paths::BelowImages::Part;

std::int64_t UploadNumber(const UploadId& upload) {
  std::int64_t number = 0;
  std::from_chars(upload.value.data(), upload.value.data() + upload.value.size(), number);
  return number;
}

// The greatest upload number of each build and provider.
std::map<std::string, std::int64_t> GreatestNumbers(const std::map<std::string, std::string>& records) {
  std::map<std::string, std::int64_t> greatest;
  for (const auto& [path, data] : records) {
    paths::BelowImages place = paths::ParseBelowImages(path);
    if (place.part != Part::kUpload) continue;
    std::int64_t& number = greatest[paths::Uploads(place.key.build, place.key.provider)];
    number = std::max(number, UploadNumber(place.key.upload));
  }
  return greatest;
}

// Creates so many numbered children; those that are not in `wanted` are deleted again.
Task<> MakeNumbers(Tree& tree, std::string directory, std::int64_t count,
                   const std::map<std::string, std::string>& wanted) {
  co_await tree.Ensure(directory);
  for (std::int64_t made = 0; made < count; ++made) {
    auto attempt = [&] {
      return tree.client().Create(directory + "/", "", zk::CreateMode::kPersistentSequential);
    };
    zk::Result<zk::Created> created = co_await tree.Repeat<zk::Result<zk::Created>>(attempt);
    // Where a number exists before its turn, any other child uses up the turn.
    std::string path = created ? created->path : directory + "/number";
    if (!created) co_await tree.Make(path);
    if (!wanted.contains(path)) co_await tree.Delete(path);
  }
}

// Adds the data of the znode, where there is one.
Task<bool> Export(Tree& tree, std::string path, std::map<std::string, std::string>& records) {
  zk::Result<zk::NodeData> read = co_await tree.Get(path);
  if (read) records[path] = std::move(read->data);
  co_return read.has_value();
}

Task<> ExportBuild(Tree& tree, BuildKey build, std::map<std::string, std::string>& records) {
  bool exists = co_await Export(tree, paths::Build(build), records);
  if (!exists) co_return;
  std::vector<std::string> providers = co_await tree.Children(paths::Providers(build));
  for (const std::string& provider : providers) {
    std::string directory = paths::Uploads(build, ProviderName(provider));
    std::vector<std::string> uploads = co_await tree.Children(directory);
    for (const std::string& upload : uploads) {
      if (paths::IsUploadId(upload)) co_await Export(tree, directory + "/" + upload, records);
    }
  }
}

}  // namespace

Task<std::map<std::string, std::string>> ExportImages(Store& store) {
  std::map<std::string, std::string> records;
  std::vector<ImageName> images = co_await store.images.List();
  for (const ImageName& image : images) {
    co_await Export(store.tree, paths::Pause(image), records);
    std::vector<std::string> builds = co_await store.tree.Children(paths::Builds(image));
    for (const std::string& name : builds) {
      BuildKey build{image, BuildId(name)};
      if (paths::IsBuildId(name)) co_await ExportBuild(store.tree, build, records);
    }
  }
  co_return records;
}

Task<> ImportImages(Store& store, std::map<std::string, std::string> records) {
  for (const auto& [path, data] : records) {
    Part part = paths::ParseBelowImages(path).part;
    if (part != Part::kPause && part != Part::kBuild && part != Part::kUpload) {
      throw Error(Verdict::kInvalid, fmt::format("{} is not the path of an image's record", path));
    }
  }
  std::map<std::string, std::int64_t> greatest = GreatestNumbers(records);
  for (const auto& [directory, number] : greatest)
    co_await MakeNumbers(store.tree, directory, number, records);
  for (const auto& [path, data] : records) {
    co_await store.tree.Ensure(path);
    auto write = [&] { return store.tree.client().Set(path, data); };
    zk::Result<zk::Stat> written = co_await store.tree.Repeat<zk::Result<zk::Stat>>(write);
    if (!written) throw Error(Verdict::kConflict, fmt::format("{} vanished while it was written", path));
  }
}

namespace {

Task<> AddUploadsOf(Store& store, BuildKey build, std::vector<StoredUpload>& uploads) {
  zk::Result<zk::Children> providers = co_await store.tree.client().GetChildren(paths::Providers(build));
  if (!providers) co_return;
  for (const std::string& provider : providers->names) {
    std::vector<StoredUpload> found = co_await store.images.ListUploads(build, ProviderName(provider));
    for (StoredUpload& upload : found) uploads.push_back(std::move(upload));
  }
}

}  // namespace

Task<std::vector<StoredUpload>> ListUploads(Store& store) {
  std::vector<StoredUpload> uploads;
  std::vector<ImageName> images = co_await store.images.List();
  for (const ImageName& image : images) {
    std::vector<StoredBuild> builds = co_await store.images.ListBuilds(image);
    for (const StoredBuild& build : builds) co_await AddUploadsOf(store, build.id, uploads);
  }
  co_return uploads;
}

}  // namespace nodepool::store
