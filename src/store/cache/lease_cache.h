#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "base/listeners.h"
#include "base/subscription.h"
#include "store/malformed.h"
#include "store/records.h"
#include "zk/recipes/tree_cache.h"

namespace nodepool::store {

// Every lease, in memory. Malformed records are reported once per version, counted, and not listed (D-08).
class LeaseCache : private zk::TreeCache::Listener {
 public:
  // As NodeCache::Listener.
  using Listener = std::function<void(const LeaseId&, const StoredLease* before, const StoredLease* after)>;

  LeaseCache(Loop& loop, zk::Client& client);
  ~LeaseCache() override;

  void Start() { tree_.Start(); }
  Task<> Stop() { return tree_.Stop(); }
  Task<> WaitSynced() { return tree_.WaitSynced(); }
  bool synced() const { return tree_.synced(); }
  // Ends when the cache shows everything that any client wrote before this was called.
  Task<> CatchUp() { return tree_.CatchUp(); }

  Subscription OnChange(Listener listener) const { return listeners_.Add(std::move(listener)); }

  const StoredLease* Find(const LeaseId& id) const;
  const std::map<LeaseId, StoredLease>& all() const { return leases_; }
  const std::set<LeaseId>& OfClient(const std::string& client) const;
  // How many nodes the client's leases have or wait for.
  std::size_t NodeCountOf(const std::string& client) const;
  // The lease that waits for the request; null: none.
  const StoredLease* WaitingFor(const RequestId& request) const;
  // The lease that has the node; null: none.
  const StoredLease* Holding(const NodeId& node) const;

  std::uint64_t malformed_count() const { return malformed_.count(); }

 private:
  struct ClientTotal {
    std::set<LeaseId> leases;
    std::size_t nodes = 0;
  };

  zk::TreeCache::Interest InterestIn(std::string_view path) const override;
  void OnNode(const std::string& path, const zk::NodeData& node) override;
  void OnGone(const std::string& path) override;
  void OnSynced() override {}

  void Replace(const LeaseId& id, std::optional<StoredLease> after);
  void Index(const StoredLease& lease);
  void RemoveFromIndexes(const StoredLease& lease);

  std::map<LeaseId, StoredLease> leases_;
  std::map<std::string, ClientTotal> by_client_;
  std::map<RequestId, LeaseId> by_request_;
  std::map<NodeId, LeaseId> by_node_;
  MalformedRecords malformed_;
  Listeners<const LeaseId&, const StoredLease*, const StoredLease*> listeners_;
  zk::TreeCache tree_;
};

}  // namespace nodepool::store
