#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "store/cache/record_cache.h"

namespace nodepool::store {

// Builds and uploads of all images, in memory, sorted by key.
class ImageCache : public Cache {
 public:
  using Listener = std::function<void(const ImageName&)>;  // something about this image changed
  using BuildListener = RecordMap<StoredBuild>::Listener;
  using UploadListener = RecordMap<StoredUpload>::Listener;

  ImageCache(Loop& loop, zk::Client& client) : Cache(loop, client, kSettings) {}
  explicit ImageCache(CacheGroup& group) : Cache(group, kSettings) {}

  Subscription OnChange(Listener listener) const { return listeners_.Add(std::move(listener)); }
  Subscription OnBuild(BuildListener listener) const { return builds_.OnChange(std::move(listener)); }
  Subscription OnUpload(UploadListener listener) const { return uploads_.OnChange(std::move(listener)); }

  const std::map<BuildKey, StoredBuild>& builds() const { return builds_.all(); }
  const std::map<UploadKey, StoredUpload>& uploads() const { return uploads_.all(); }
  // Builds that have been uploaded to the provider, or are to be.
  const std::set<BuildKey>& BuildsIn(const ProviderName& provider) const;
  const std::set<ImageName>& paused() const { return paused_; }
  const std::set<ImageName>& images() const { return images_; }
  // Znodes of builds without data, and when they were created: leftovers of other programs'
  // locking.
  const std::map<BuildKey, WallTime>& empty_builds() const { return empty_builds_; }
  // When a build was requested, by image.
  const std::map<ImageName, WallTime>& build_requests() const { return build_requests_; }
  // Whether a builder builds the image, or uploads the build to the provider, as far as this cache
  // knows.
  bool IsBuildLocked(const ImageName& image) const { return building_.contains(image); }
  bool IsUploadLocked(const BuildKey& build, const ProviderName& provider) const {
    return uploading_.contains({build, provider});
  }

  // How often an operator has asked to upload the build to the provider again (Images::RetryUpload).
  std::int32_t UploadRetries(const BuildKey& build, const ProviderName& provider) const;

  // The ready upload of the image in the provider with the greatest state_time, or null.
  const StoredUpload* NewestReadyUpload(const ImageName& image, const ProviderName& provider) const;

 private:
  static constexpr Settings kSettings{"image", paths::kImages};

  // Uploads with their state_time.
  struct ByTime {
    std::set<std::pair<WallTime, UploadKey>> uploads;
    void Add(const StoredUpload& upload) { uploads.emplace(upload.record.state_time, upload.id); }
    void Remove(const StoredUpload& upload) { uploads.erase({upload.record.state_time, upload.id}); }
    bool empty() const { return uploads.empty(); }
  };
  using ImageInProvider = std::pair<ImageName, ProviderName>;

  zk::TreeCache::Interest InterestIn(std::string_view path) const override;
  void OnZnode(const std::string& path, const zk::NodeData& node) override;
  void OnZnodeGone(const std::string& path) override;

  void ReadBuild(const BuildKey& key, const std::string& path, const zk::NodeData& node);

  RecordMap<StoredBuild> builds_;
  std::map<BuildKey, WallTime> empty_builds_;
  RecordMap<StoredUpload> uploads_;
  RecordIndex<StoredUpload, ImageInProvider, ByTime> ready_uploads_{
      uploads_, [](const StoredUpload& upload) {
        bool is_ready = upload.record.state == ImageState::kReady;
        return is_ready ? std::optional(ImageInProvider(upload.id.build.image, upload.id.provider))
                        : std::nullopt;
      }};
  std::map<ProviderName, std::set<BuildKey>> builds_in_;
  std::map<std::pair<BuildKey, ProviderName>, std::int32_t> upload_retries_;  // those that are not 0
  std::set<ImageName> images_;
  std::set<ImageName> paused_;
  std::map<ImageName, WallTime> build_requests_;
  // The contenders for the locks.
  std::map<ImageName, std::set<std::string>> building_;
  std::map<std::pair<BuildKey, ProviderName>, std::set<std::string>> uploading_;
  Listeners<const ImageName&> listeners_;
};

}  // namespace nodepool::store
