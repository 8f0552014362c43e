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

Subscription ImageCache::OnBuild(BuildListener listener) const {
  return build_listeners_.Add(std::move(listener));
}

Subscription ImageCache::OnUpload(UploadListener listener) const {
  return upload_listeners_.Add(std::move(listener));
}

const StoredUpload* ImageCache::NewestReadyUpload(const ImageName& image,
                                                  const ProviderName& provider) const {
  std::pair key(image, provider);
  const auto& ready = FindOrEmpty(ready_uploads_, key);
  return ready.empty() ? nullptr : &uploads_.at(ready.rbegin()->second);
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
      ReadBuild(place.key.build, path, node);
      break;
    case Part::kProvider:
      builds_in_[place.key.provider].insert(place.key.build);
      if (node.stat.version > 0) upload_retries_[{place.key.build, place.key.provider}] = node.stat.version;
      break;
    case Part::kUpload:
      ReadUpload(place.key, path, node);
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
      empty_builds_.erase(place.key.build);
      Replace(place.key.build, std::nullopt);
      break;
    case Part::kProvider:
      Withdraw(builds_in_, place.key.provider, place.key.build);
      upload_retries_.erase({place.key.build, place.key.provider});
      break;
    case Part::kUpload:
      Replace(place.key, std::nullopt);
      break;
    case Part::kOther:
      return;
  }
  malformed_.Discard(path);
  listeners_.Notify(image);
}

void ImageCache::ReadBuild(const BuildKey& key, const std::string& path, const zk::NodeData& node) {
  empty_builds_.erase(key);
  if (node.data.empty()) {
    empty_builds_[key] = RevisionOf(node.stat).created;
    return Replace(key, std::nullopt);
  }
  Expected<ImageBuild> build = ParseImageBuild(node.data, loop_.Now());
  if (!build) {
    malformed_.Report(path, node.stat, build.error().message());
    return Replace(key, std::nullopt);
  }
  malformed_.Discard(path);
  Replace(key, StoredBuild{key, std::move(*build), RevisionOf(node.stat)});
}

void ImageCache::ReadUpload(const UploadKey& key, const std::string& path, const zk::NodeData& node) {
  Expected<ImageUpload> upload = ParseImageUpload(node.data, loop_.Now());
  if (!upload) {
    malformed_.Report(path, node.stat, upload.error().message());
    return Replace(key, std::nullopt);
  }
  malformed_.Discard(path);
  Replace(key, StoredUpload{key, std::move(*upload), RevisionOf(node.stat)});
}

void ImageCache::Replace(const BuildKey& key, std::optional<StoredBuild> after) {
  auto before = builds_.extract(key);
  const StoredBuild* now = after ? &builds_.emplace(key, std::move(*after)).first->second : nullptr;
  if (before || now != nullptr) build_listeners_.Notify(before ? &before.mapped() : nullptr, now);
}

void ImageCache::Replace(const UploadKey& key, std::optional<StoredUpload> after) {
  const std::pair place(key.build.image, key.provider);
  auto before = uploads_.extract(key);
  if (before) Withdraw(ready_uploads_, place, std::pair(before.mapped().record.state_time, key));
  const StoredUpload* now = nullptr;
  if (after) {
    now = &uploads_.emplace(key, std::move(*after)).first->second;
    if (now->record.state == ImageState::kReady) ready_uploads_[place].emplace(now->record.state_time, key);
  }
  if (before || now != nullptr) upload_listeners_.Notify(before ? &before.mapped() : nullptr, now);
}

}  // namespace nodepool::store
