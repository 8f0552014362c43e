#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/ids.h"
#include "base/subscription.h"
#include "model/resources.h"
#include "sched/order.h"
#include "store/node_cache.h"

namespace nodepool::launcher {

class Ledger;

// A free node claimed in the ledger, for as long as this lives.
class NodeClaim {
 public:
  NodeClaim(Ledger& ledger, NodeId node);
  NodeClaim(NodeClaim&& other) noexcept
      : ledger_(std::exchange(other.ledger_, nullptr)), node_(other.node_) {}
  NodeClaim& operator=(NodeClaim&&) = delete;
  ~NodeClaim();

 private:
  Ledger* ledger_;
  NodeId node_;
};

// What this launcher has decided but the node cache does not show yet: launches
// whose record is being created, and free nodes that a request is about to lock.
// Without it two decisions in a row would spend the same capacity twice.
class Ledger {
 public:
  using EntryId = std::uint64_t;

  explicit Ledger(store::NodeCache& nodes);

  // A launch in a pool is decided; it counts until the cache lists its node.
  EntryId Commit(const PoolKey& pool, Resources need);
  // The launch got its node record.
  void SetNode(EntryId entry, const NodeId& node);
  // The launch came to nothing, or is over. Releasing twice is fine.
  void Release(EntryId entry);
  bool IsPending(EntryId entry) const { return entries_.contains(entry); }

  const Resources& PendingIn(const PoolKey& pool) const;
  const Resources& PendingIn(const ProviderName& provider) const;

  // Launches in progress, by provider; for max-concurrency.
  void BeginLaunch(const ProviderName& provider) { ++launches_[provider]; }
  void EndLaunch(const ProviderName& provider) { --launches_[provider]; }
  int LaunchesInProgress(const ProviderName& provider) const;
  // What a request waits for that other pools of the provider could take, too.
  struct Awaited {
    int turns = 0;  // launches that wait for their turn under max-concurrency
    std::set<std::string> resources;
  };
  // Nothing awaited: it does not wait any more.
  void Await(const ProviderName& provider, const sched::ServiceOrder& order, Awaited awaited);
  // The same of all requests, or of those before one.
  Awaited AwaitedIn(const ProviderName& provider, const sched::ServiceOrder* before = nullptr) const;

  // The cloud has refused what seemed to fit: it counts as full for a while.
  void CloudRefused(const ProviderName& provider, SteadyTime until) { full_until_[provider] = until; }
  SteadyTime CloudFullUntil(const ProviderName& provider) const;

  // Free nodes that a part of this launcher is about to lock: the cache sets them aside, so
  // that the others keep off. Nobody claims what is claimed.
  NodeClaim Claim(const NodeId& node) { return NodeClaim(*this, node); }
  bool IsClaimed(const NodeId& node) const { return claimed_.contains(node); }

 private:
  friend class NodeClaim;
  struct Entry {
    PoolKey pool;
    Resources need;
    std::optional<NodeId> node;  // its key in by_node_
  };

  store::NodeCache& nodes_;
  std::map<EntryId, Entry> entries_;
  std::map<NodeId, EntryId> by_node_;
  std::map<PoolKey, ResourceSum> by_pool_;
  std::map<ProviderName, ResourceSum> by_provider_;
  std::map<ProviderName, int> launches_;
  std::map<ProviderName, std::map<sched::ServiceOrder, Awaited>> awaited_;
  std::map<ProviderName, SteadyTime> full_until_;
  std::set<NodeId> claimed_;
  EntryId last_id_ = 0;
  Subscription subscription_;
};

}  // namespace nodepool::launcher
