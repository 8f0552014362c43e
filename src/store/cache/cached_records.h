#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/node_request.h"
#include "store/cache/record_cache.h"
#include "store/records.h"

namespace nodepool::store {

// Every process that registered itself under /nodepool/components (coordination.md 8), by its path below,
// e.g. "pool/np010000000003".
class ComponentRegistry : public RecordCache<Component> {
 public:
  using RecordCache::RecordCache;

  // The registered pools only, which are the candidates for every request.
  std::vector<const Component*> Pools() const {
    std::vector<const Component*> pools;
    for (const auto& [path, component] : all()) {
      if (component.kind == ComponentKind::kPool) pools.push_back(&component);
    }
    return pools;
  }
  bool Contains(const std::string& path) const { return Find(path) != nullptr; }

  // The effective model version: the minimum over all components and our own 0.
  std::int64_t model_api() const {
    std::int64_t min = 0;
    for (const auto& [path, component] : all()) min = std::min(min, component.model_api);
    return min;
  }
};

// --- By what NodeCache finds nodes -----------------------------------------
inline const ProviderName& ProviderOf(const StoredNode& node) { return node.record.provider; }
inline std::optional<NodeState> StateOf(const StoredNode& node) { return node.record.state; }
inline std::optional<std::string> JobHeldFor(const StoredNode& node) { return HeldForJob(node.record); }
inline std::optional<std::string> ClientHolding(const StoredNode& node) { return HolderOf(node.record); }
std::optional<RequestId> RequestOf(const StoredNode& node);
// Of a node with `resources`.
std::optional<std::string> TenantOf(const StoredNode& node);
// Hostname, whole and short, and external id.
std::set<std::string> NamesOf(const StoredNode& node);
// The labels of a ready, unallocated node; none of others. A node may name a label twice.
std::set<LabelName> FreeLabels(const StoredNode& node);

// --- What its indexes sum up -----------------------------------------------
// What the nodes of a pool use.
struct PoolUse {
  std::size_t nodes = 0;
  ResourceSum used;  // by nodes with `resources`
};

struct ProviderUse {
  ResourceSum used;                   // by nodes with `resources`
  std::map<PoolName, PoolUse> pools;  // those with nodes
  // Nodes without `resources`, by their pool and first label.
  std::map<PoolName, std::map<LabelName, int>> unknown;
  void Add(const StoredNode& node);
  void Remove(const StoredNode& node);
  bool empty() const { return pools.empty(); }
};

struct TenantUse {
  ResourceSum used;
  void Add(const StoredNode& node) { used.Add(*node.record.resources); }
  void Remove(const StoredNode& node) { used.Subtract(*node.record.resources); }
  bool empty() const { return used.total().empty(); }
};

// Every node of the tree, in memory, with the indexes the launcher needs. Lock contenders are known without
// reading anything.
//
// Listeners are also called when only is_locked() changed; `before` has one contender at most. A node with
// empty data is not malformed, but listed by empty_nodes() only.
class NodeCache : public RecordCache<StoredNode> {
 public:
  using RecordCache::RecordCache;

  // Ready, unallocated nodes of a pool that carry the label and are not set aside, by id
  // (creation order).
  const std::set<NodeId>& FreeNodes(const PoolKey& pool, const LabelName& label) const;
  // Keeps a node out of FreeNodes, whatever happens to its record, until PutBack.
  void SetAside(const NodeId& id);
  void PutBack(const NodeId& id);
  // The number of ready, unallocated nodes with the label, of any provider.
  std::size_t FreeCount(const LabelName& label) const;
  // Nodes whose allocated_to names the request.
  const FewNodes& OfRequest(const RequestId& request) const;
  const std::set<NodeId>& OfProvider(const ProviderName& provider) const;
  const std::set<NodeId>& InState(NodeState state) const;
  // Nodes with this hostname, this first part of their hostname, or this external id.
  const std::set<NodeId>& Named(const std::string& name) const;
  // The nodes in state hold, by the name of the job they are held for (HeldForJob).
  const std::map<std::string, std::set<NodeId>>& HeldByJob() const;
  // The nodes that a client of leases holds (HolderOf).
  const std::set<NodeId>& HeldBy(const std::string& client) const;
  // Znodes without data: leftovers of other programs' locking.
  const std::set<NodeId>& empty_nodes() const { return empty_; }

  // Sum of the `resources` of nodes that have them, kept up to date per change.
  const Resources& UsedBy(const PoolKey& pool) const;
  const Resources& UsedBy(const ProviderName& provider) const;
  const Resources& UsedByTenant(const std::string& tenant) const;
  // Nodes of the pool without `resources`, counted by their first label; the quota calculation adds
  // the label's need for each.
  const std::map<LabelName, int>& WithoutResources(const PoolKey& pool) const;
  // The same of all pools of the provider that have such nodes.
  const std::map<PoolName, std::map<LabelName, int>>& WithoutResources(const ProviderName& provider) const;
  // The pools of a provider that have nodes, with what these use.
  const std::map<PoolName, PoolUse>& PoolsWithNodes(const ProviderName& provider) const;
  // The providers that have nodes, by name.
  std::vector<ProviderName> ProvidersWithNodes() const;

 private:
  using PoolLabel = std::pair<PoolKey, LabelName>;

  zk::TreeCache::Interest InterestIn(std::string_view path) const override;
  void OnZnode(const std::string& path, const zk::NodeData& node) override;
  void OnZnodeGone(const std::string& path) override;

  void OnRecord(const NodeId& id, const std::string& path, const zk::NodeData& node);
  void OnContender(const NodeId& id, const std::string& contender, bool is_there);
  void Replace(const NodeId& id, std::optional<StoredNode> after);
  std::set<PoolLabel> FreePlaces(const StoredNode& node) const;

  std::map<NodeId, Contenders> contenders_;  // of nodes that are not listed, or not yet
  std::set<NodeId> empty_;
  std::set<NodeId> aside_;
  RecordIndex<StoredNode, PoolLabel> free_{records_,
                                           [this](const StoredNode& node) { return FreePlaces(node); }};
  RecordIndex<StoredNode, LabelName, RecordCount> free_count_{records_, FreeLabels};
  RecordIndex<StoredNode, RequestId, FewNodes> by_request_{records_, RequestOf};
  RecordIndex<StoredNode, ProviderName> by_provider_{records_, ProviderOf};
  RecordIndex<StoredNode, NodeState> by_state_{records_, StateOf};
  // By hostname, whole and short, and external id: few launchers need it, and it takes as much memory as the
  // others together.
  RecordIndex<StoredNode, std::string> by_name_{records_, NamesOf};
  RecordIndex<StoredNode, std::string> held_by_job_{records_, JobHeldFor};
  RecordIndex<StoredNode, std::string> held_by_client_{records_, ClientHolding};
  RecordIndex<StoredNode, ProviderName, ProviderUse> use_{records_, ProviderOf};
  RecordIndex<StoredNode, std::string, TenantUse> use_by_tenant_{records_, TenantOf};
};

// Every request of the tree, in memory. One with a malformed id counts as malformed.
class RequestCache : public RecordCache<StoredRequest> {
 public:
  using RecordCache::RecordCache;

  const std::set<RequestId>& InState(RequestState state) const { return by_state_.EntryOf(state); }

 private:
  RecordIndex<StoredRequest, RequestState> by_state_{
      records_, [](const StoredRequest& request) { return request.record.state; }};
};

// The lock directories of requests with their contenders, so that the launcher knows whether a lock
// is held without probing it, and finds those of vanished requests without reading (D-06).
class RequestLockCache : public Cache {
 public:
  using Listener = std::function<void(const RequestId&)>;  // something about this directory changed

  RequestLockCache(Loop& loop, zk::Client& client) : Cache(loop, client, kSettings) {}
  explicit RequestLockCache(CacheGroup& group) : Cache(group, kSettings) {}

  Subscription OnChange(Listener listener) const { return listeners_.Add(std::move(listener)); }

  struct Directory {
    std::set<std::string> contenders;
  };
  const std::map<RequestId, Directory>& all() const { return directories_; }
  bool IsLocked(const RequestId& id) const;

 private:
  static constexpr Settings kSettings{"request lock", paths::kRequestLocks};

  zk::TreeCache::Interest InterestIn(std::string_view path) const override;
  void OnZnode(const std::string& path, const zk::NodeData& node) override;
  void OnZnodeGone(const std::string& path) override;

  std::map<RequestId, Directory> directories_;
  Listeners<const RequestId&> listeners_;
};

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
