#include "store/cache/image_cache.h"

#include "base/find_or_empty.h"

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

const StoredUpload* ImageCache::NewestReadyUpload(const ImageName& image,
                                                  const ProviderName& provider) const {
  const auto& ready = ready_uploads_.EntryOf({image, provider}).uploads;
  return ready.empty() ? nullptr : uploads_.Find(ready.rbegin()->second);
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

void ImageCache::OnZnode(const std::string& path, const zk::NodeData& node) {
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
      uploads_.Replace(place.key, Read<StoredUpload>(place.key, path, node));
      break;
    case Part::kOther:
      return;
  }
  listeners_.Notify(image);
}

void ImageCache::OnZnodeGone(const std::string& path) {
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
      builds_.Replace(place.key.build, std::nullopt);
      break;
    case Part::kProvider:
      Withdraw(builds_in_, place.key.provider, place.key.build);
      upload_retries_.erase({place.key.build, place.key.provider});
      break;
    case Part::kUpload:
      uploads_.Replace(place.key, std::nullopt);
      break;
    case Part::kOther:
      return;
  }
  listeners_.Notify(image);
}

void ImageCache::ReadBuild(const BuildKey& key, const std::string& path, const zk::NodeData& node) {
  if (node.data.empty()) {
    malformed_.Discard(path);
    empty_builds_[key] = RevisionOf(node.stat).created;
    return builds_.Replace(key, std::nullopt);
  }
  empty_builds_.erase(key);
  builds_.Replace(key, Read<StoredBuild>(key, path, node));
}

}  // namespace nodepool::store
