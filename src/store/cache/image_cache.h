#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/listeners.h"
#include "base/subscription.h"
#include "store/malformed.h"
#include "store/records.h"
#include "zk/recipes/tree_cache.h"

namespace nodepool::store {

// Builds and uploads of all images, in memory, sorted by key.
class ImageCache : private zk::TreeCache::Listener {
 public:
  using Listener = std::function<void(const ImageName&)>;  // something about this image changed
  // `before` or `after` is null for a record that appeared or vanished. The pointers are valid during the
  // call.
  using BuildListener = std::function<void(const StoredBuild* before, const StoredBuild* after)>;
  using UploadListener = std::function<void(const StoredUpload* before, const StoredUpload* after)>;

  ImageCache(Loop& loop, zk::Client& client);
  ~ImageCache() override;

  void Start() { tree_.Start(); }
  Task<> Stop() { return tree_.Stop(); }
  Task<> WaitSynced() { return tree_.WaitSynced(); }
  bool synced() const { return tree_.synced(); }
  // Ends when the cache shows everything that any client wrote before this was called.
  Task<> CatchUp() { return tree_.CatchUp(); }

  Subscription OnChange(Listener listener) const;
  Subscription OnBuild(BuildListener listener) const;
  Subscription OnUpload(UploadListener listener) const;

  const std::map<BuildKey, StoredBuild>& builds() const { return builds_; }
  const std::map<UploadKey, StoredUpload>& uploads() const { return uploads_; }
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

  std::uint64_t malformed_count() const { return malformed_.count(); }

 private:
  zk::TreeCache::Interest InterestIn(std::string_view path) const override;
  void OnNode(const std::string& path, const zk::NodeData& node) override;
  void OnGone(const std::string& path) override;
  void OnSynced() override {}

  void ReadBuild(const BuildKey& key, const std::string& path, const zk::NodeData& node);
  void ReadUpload(const UploadKey& key, const std::string& path, const zk::NodeData& node);
  void Replace(const BuildKey& key, std::optional<StoredBuild> after);
  void Replace(const UploadKey& key, std::optional<StoredUpload> after);

  Loop& loop_;
  std::map<BuildKey, StoredBuild> builds_;
  std::map<BuildKey, WallTime> empty_builds_;
  std::map<UploadKey, StoredUpload> uploads_;
  std::map<ProviderName, std::set<BuildKey>> builds_in_;
  std::map<std::pair<ImageName, ProviderName>, std::set<std::pair<WallTime, UploadKey>>>
      ready_uploads_;                                                         // by state_time
  std::map<std::pair<BuildKey, ProviderName>, std::int32_t> upload_retries_;  // those that are not 0
  std::set<ImageName> images_;
  std::set<ImageName> paused_;
  std::map<ImageName, WallTime> build_requests_;
  // The contenders for the locks.
  std::map<ImageName, std::set<std::string>> building_;
  std::map<std::pair<BuildKey, ProviderName>, std::set<std::string>> uploading_;
  MalformedRecords malformed_;
  Listeners<const ImageName&> listeners_;
  Listeners<const StoredBuild*, const StoredBuild*> build_listeners_;
  Listeners<const StoredUpload*, const StoredUpload*> upload_listeners_;
  zk::TreeCache tree_;
};

}  // namespace nodepool::store
