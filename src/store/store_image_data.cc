#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "store/paths.h"
#include "store/repeat.h"
#include "store/store.h"

namespace nodepool::store {
namespace {

using Part = paths::BelowImages::Part;

std::int64_t NumberOf(const UploadId& upload) {
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
    number = std::max(number, NumberOf(place.key.upload));
  }
  return greatest;
}

}  // namespace

Task<std::map<std::string, std::string>> Store::ExportImages() {
  std::map<std::string, std::string> records;
  std::vector<ImageName> images = co_await ListImages();
  for (const ImageName& image : images) {
    zk::Result<zk::NodeData> pause = co_await Get(paths::Pause(image));
    if (pause) records[paths::Pause(image)] = pause->data;
    std::vector<std::string> builds = co_await Children(paths::Builds(image));
    for (const std::string& name : builds) {
      if (!paths::IsBuildId(name)) continue;
      BuildKey build{image, BuildId(name)};
      zk::Result<zk::NodeData> record = co_await Get(paths::Build(build));
      if (!record) continue;
      records[paths::Build(build)] = record->data;
      std::vector<std::string> providers = co_await Children(paths::Providers(build));
      for (const std::string& provider : providers) {
        std::string directory = paths::Uploads(build, ProviderName(provider));
        std::vector<std::string> uploads = co_await Children(directory);
        for (const std::string& upload : uploads) {
          if (!paths::IsUploadId(upload)) continue;
          std::string path = directory + "/" + upload;
          zk::Result<zk::NodeData> data = co_await Get(path);
          if (data) records[path] = data->data;
        }
      }
    }
  }
  co_return records;
}

Task<> Store::ImportImages(std::map<std::string, std::string> records) {
  for (const auto& [path, data] : records) {
    Part part = paths::ParseBelowImages(path).part;
    if (part != Part::kPause && part != Part::kBuild && part != Part::kUpload) {
      throw Error(Verdict::kInvalid, fmt::format("{} is no path of an image's record", path));
    }
  }
  std::map<std::string, std::int64_t> greatest = GreatestNumbers(records);
  for (const auto& [directory, number] : greatest) co_await MakeNumbers(directory, number, records);
  for (const auto& [path, data] : records) {
    co_await Ensure(path);
    std::function<Task<zk::Result<zk::Stat>>()> write = [&] { return client_.Set(path, data); };
    zk::Result<zk::Stat> written = co_await Repeat(loop_, random_, write);
    if (!written) throw Error(Verdict::kConflict, fmt::format("{} vanished while it was written", path));
  }
}

Task<> Store::MakeNumbers(std::string directory, std::int64_t count,
                          const std::map<std::string, std::string>& wanted) {
  co_await Ensure(directory);
  for (std::int64_t made = 0; made < count; ++made) {
    std::function<Task<zk::Result<zk::Created>>()> attempt = [&] {
      return client_.Create(directory + "/", "", zk::CreateMode::kPersistentSequential);
    };
    zk::Result<zk::Created> created = co_await Repeat(loop_, random_, attempt);
    // Where a number was written down before its turn, any other child takes the turn.
    std::string path = created ? created->path : directory + "/number";
    if (!created) co_await Make(path);
    if (!wanted.contains(path)) co_await Delete(path);
  }
}

}  // namespace nodepool::store
