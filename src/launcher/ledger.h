#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/ids.h"
#include "model/resources.h"
#include "store/node_cache.h"

namespace nodepool::launcher {

// What this launcher has decided but the node cache does not show yet: launches
// whose record is being created, and free nodes that a request is about to lock.
// Without it two decisions in a row would spend the same capacity twice.
class Ledger {
 public:
  using EntryId = std::uint64_t;

  explicit Ledger(store::NodeCache& nodes);

  // A launch in a pool is decided; it counts until the cache lists its node.
  EntryId Commit(const PoolKey& pool, Resources need, const std::optional<std::string>& tenant);
  // The launch got its node record.
  void SetNode(EntryId entry, const NodeId& node);
  // The launch came to nothing, or is over. Releasing twice is fine.
  void Release(EntryId entry);

  const Resources& PendingIn(const PoolKey& pool) const;
  const Resources& PendingIn(const ProviderName& provider) const;
  const Resources& PendingOf(const std::string& tenant) const;

  // Launches in progress, by provider; for max-concurrency.
  void BeginLaunch(const ProviderName& provider) { ++launches_[provider]; }
  void EndLaunch(const ProviderName& provider) { --launches_[provider]; }
  int LaunchesInProgress(const ProviderName& provider) const;

  void Claim(const NodeId& node) { claimed_.insert(node); }
  void Unclaim(const NodeId& node) { claimed_.erase(node); }
  const std::set<NodeId>& claimed() const { return claimed_; }

 private:
  struct Entry {
    PoolKey pool;
    Resources need;
    std::optional<std::string> tenant;
  };

  store::NodeCache& nodes_;
  std::map<EntryId, Entry> entries_;
  std::map<NodeId, EntryId> by_node_;
  std::map<PoolKey, Resources> by_pool_;
  std::map<ProviderName, Resources> by_provider_;
  std::map<std::string, Resources> by_tenant_;
  std::map<ProviderName, int> launches_;
  std::set<NodeId> claimed_;
  EntryId last_id_ = 0;
  zk::Registration registration_;
};

}  // namespace nodepool::launcher
