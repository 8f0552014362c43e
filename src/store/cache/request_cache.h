#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>

#include "base/listeners.h"
#include "base/subscription.h"
#include "store/malformed.h"
#include "store/paths.h"
#include "store/records.h"
#include "zk/recipes/tree_cache.h"

namespace nodepool::store {

// Every request of the tree, in memory. Malformed records and malformed ids are
// reported once per version, counted, and not listed (D-08).
class RequestCache : private zk::TreeCache::Listener {
 public:
  // As NodeCache::Listener.
  using Listener =
      std::function<void(const RequestId&, const StoredRequest* before, const StoredRequest* after)>;

  RequestCache(Loop& loop, zk::Client& client);
  ~RequestCache() override;

  void Start() { tree_.Start(); }
  Task<> Stop() { return tree_.Stop(); }
  Task<> WaitSynced() { return tree_.WaitSynced(); }
  bool synced() const { return tree_.synced(); }
  // Ends when every change made so far by anybody is in the cache.
  Task<> CatchUp() { return tree_.CatchUp(); }

  Subscription OnChange(Listener listener) const;

  const StoredRequest* Find(const RequestId& id) const;
  // Whether its record is there, but cannot be read.
  bool IsMalformed(const RequestId& id) const { return malformed_.Contains(paths::Request(id)); }
  const std::map<RequestId, StoredRequest>& all() const { return requests_; }
  const std::set<RequestId>& InState(RequestState state) const;

  std::uint64_t malformed_count() const { return malformed_.count(); }

 private:
  zk::TreeCache::Interest InterestIn(std::string_view path) const override;
  void OnNode(const std::string& path, const zk::NodeData& node) override;
  void OnGone(const std::string& path) override;
  void OnSynced() override {}

  void Replace(const RequestId& id, std::optional<StoredRequest> after);

  Loop& loop_;
  std::map<RequestId, StoredRequest> requests_;
  std::map<RequestState, std::set<RequestId>> by_state_;
  MalformedRecords malformed_;
  Listeners<const RequestId&, const StoredRequest*, const StoredRequest*> listeners_;
  zk::TreeCache tree_;
};

// The lock directories of requests with their contenders, so that the launcher knows whether a lock
// is held without probing it, and finds those of vanished requests without reading (D-06).
class RequestLockCache : private zk::TreeCache::Listener {
 public:
  using Listener = std::function<void(const RequestId&)>;  // something about this directory changed

  RequestLockCache(Loop& loop, zk::Client& client);
  ~RequestLockCache() override;

  void Start() { tree_.Start(); }
  Task<> Stop() { return tree_.Stop(); }
  Task<> WaitSynced() { return tree_.WaitSynced(); }

  Subscription OnChange(Listener listener) const;

  struct Directory {
    std::set<std::string> contenders;
  };
  const std::map<RequestId, Directory>& all() const { return directories_; }
  bool IsLocked(const RequestId& id) const;

 private:
  zk::TreeCache::Interest InterestIn(std::string_view path) const override;
  void OnNode(const std::string& path, const zk::NodeData& node) override;
  void OnGone(const std::string& path) override;
  void OnSynced() override {}

  std::map<RequestId, Directory> directories_;
  Listeners<const RequestId&> listeners_;
  zk::TreeCache tree_;
};

}  // namespace nodepool::store
