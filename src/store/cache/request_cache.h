#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "store/cache/record_cache.h"

namespace nodepool::store {

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

}  // namespace nodepool::store
