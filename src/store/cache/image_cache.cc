#include "store/cache/image_cache.h"

#include "base/find_or_empty.h"
#include "store/decode.h"

namespace nodepool::store {

using Part = paths::BelowImages::Part;

namespace {

template <class Key, class Name>
void Withdraw(std::map<Key, std::set<Name>>& names, const Key& key, const Name& name) {
  auto found = names.find(key);
  if (found == names.end()) return;
  found->second.erase(name);
  if (found->second.empty()) names.erase(found);
}

}  // namespace

ImageCache::ImageCache(Loop& loop, zk::Client& client)
    : loop_(loop),
      malformed_(log::Logger("nodepool.zk.ZooKeeper")),
      tree_(loop, client, std::string(paths::kImages), *this) {}

ImageCache::~ImageCache() = default;

Subscription ImageCache::OnChange(Listener listener) const { return listeners_.Add(std::move(listener)); }

const StoredUpload* ImageCache::NewestReadyUpload(const ImageName& image,
                                                  const ProviderName& provider) const {
  const StoredUpload* newest = nullptr;
  for (const UploadKey& key : FindOrEmpty(ready_uploads_, std::pair(image, provider))) {
    const StoredUpload& upload = uploads_.at(key);
    if (newest == nullptr || upload.record.state_time >= newest->record.state_time) newest = &upload;
  }
  return newest;
}

const std::set<BuildKey>& ImageCache::BuildsIn(const ProviderName& provider) const {
  return FindOrEmpty(builds_in_, provider);
}

std::int32_t ImageCache::UploadRetries(const BuildKey& build, const ProviderName& provider) const {
  auto found = upload_retries_.find({build, provider});
  return found == upload_retries_.end() ? 0 : found->second;
}

zk::TreeCache::Interest ImageCache::InterestIn(std::string_view path) const {
  switch (paths::ParseBelowImages(path).part) {
    case Part::kBuild:
    case Part::kUpload:
    case Part::kBuildRequest:  // its age
    case Part::kProvider:      // its version
      return zk::TreeCache::Interest::kData;
    case Part::kImage:
    case Part::kPause:
    case Part::kImageContender:
    case Part::kUploadsContender:
      return zk::TreeCache::Interest::kExistence;
    case Part::kOther:
      break;
  }
  return zk::TreeCache::Interest::kNone;
}

void ImageCache::OnNode(const std::string& path, const zk::NodeData& node) {
  paths::BelowImages place = paths::ParseBelowImages(path);
  const ImageName& image = place.key.build.image;
  switch (place.part) {
    case Part::kImage:
      images_.insert(image);
      break;
    case Part::kPause:
      paused_.insert(image);
      break;
    case Part::kBuildRequest:
      build_requests_[image] = RevisionOf(node.stat).created;
      break;
    case Part::kImageContender:
      building_[image].insert(place.contender);
      break;
    case Part::kUploadsContender:
      uploading_[{place.key.build, place.key.provider}].insert(place.contender);
      break;
    case Part::kBuild:
      OnBuild(place.key.build, path, node);
      break;
    case Part::kProvider:
      builds_in_[place.key.provider].insert(place.key.build);
      if (node.stat.version > 0) upload_retries_[{place.key.build, place.key.provider}] = node.stat.version;
      break;
    case Part::kUpload:
      OnUpload(place.key, path, node);
      break;
    case Part::kOther:
      return;
  }
  listeners_.Notify(image);
}

void ImageCache::OnGone(const std::string& path) {
  paths::BelowImages place = paths::ParseBelowImages(path);
  const ImageName& image = place.key.build.image;
  switch (place.part) {
    case Part::kImage:
      images_.erase(image);
      break;
    case Part::kPause:
      paused_.erase(image);
      break;
    case Part::kBuildRequest:
      build_requests_.erase(image);
      break;
    case Part::kImageContender:
      Withdraw(building_, image, place.contender);
      break;
    case Part::kUploadsContender:
      Withdraw(uploading_, std::pair(place.key.build, place.key.provider), place.contender);
      break;
    case Part::kBuild:
      builds_.erase(place.key.build);
      empty_builds_.erase(place.key.build);
      break;
    case Part::kProvider:
      Withdraw(builds_in_, place.key.provider, place.key.build);
      upload_retries_.erase({place.key.build, place.key.provider});
      break;
    case Part::kUpload:
      RemoveUpload(place.key);
      break;
    case Part::kOther:
      return;
  }
  malformed_.Discard(path);
  listeners_.Notify(image);
}

void ImageCache::OnBuild(const BuildKey& key, const std::string& path, const zk::NodeData& node) {
  builds_.erase(key);
  empty_builds_.erase(key);
  if (node.data.empty()) {
    empty_builds_[key] = RevisionOf(node.stat).created;
    return;
  }
  Expected<ImageBuild> build = ParseImageBuild(node.data, loop_.Now());
  if (!build) {
    malformed_.Report(path, node.stat, build.error().message());
    return;
  }
  malformed_.Discard(path);
  builds_.emplace(key, StoredBuild{key, std::move(*build), RevisionOf(node.stat)});
}

void ImageCache::OnUpload(const UploadKey& key, const std::string& path, const zk::NodeData& node) {
  RemoveUpload(key);
  Expected<ImageUpload> upload = ParseImageUpload(node.data, loop_.Now());
  if (!upload) {
    malformed_.Report(path, node.stat, upload.error().message());
    return;
  }
  malformed_.Discard(path);
  if (upload->state == ImageState::kReady) ready_uploads_[{key.build.image, key.provider}].insert(key);
  uploads_.emplace(key, StoredUpload{key, std::move(*upload), RevisionOf(node.stat)});
}

void ImageCache::RemoveUpload(const UploadKey& key) {
  uploads_.erase(key);
  Withdraw(ready_uploads_, std::pair(key.build.image, key.provider), key);
}

}  // namespace nodepool::store
