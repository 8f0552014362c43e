#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/ids.h"
#include "base/listeners.h"
#include "base/subscription.h"
#include "model/resources.h"
#include "sched/requests/order.h"
#include "store/cache/node_cache.h"

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

// A launch that was decided, in the ledger: its resources count until the node cache shows its node,
// and it is in progress for max-concurrency until it has ended. Destruction ends both.
class Reservation {
 public:
  Reservation(Ledger& ledger, const PoolKey& pool, const Resources& need);
  Reservation(Reservation&& other) noexcept
      : ledger_(std::exchange(other.ledger_, nullptr)),
        id_(other.id_),
        launching_in_(std::exchange(other.launching_in_, std::nullopt)) {}
  Reservation& operator=(Reservation&&) = delete;
  ~Reservation();

  // The launch has created its node record.
  void SetNode(const NodeId& node);
  // The launch has ended; the cache shows its node, or will.
  void EndLaunch();
  // The launch failed without a node: its resources no longer count.
  void FreeResources();
  // Whether its resources count.
  bool is_pending() const;

 private:
  Ledger* ledger_;
  std::uint64_t id_;
  std::optional<ProviderName> launching_in_;
};

// What this launcher has decided but the node cache does not show yet: launches
// whose record is being created, and free nodes that a request is about to lock.
// Without it, two consecutive decisions would spend the same capacity twice.
class Ledger {
 public:
  explicit Ledger(store::NodeCache& nodes);

  // Of launches that were decided.
  const Resources& PendingIn(const PoolKey& pool) const;
  const Resources& PendingIn(const ProviderName& provider) const;
  int LaunchesInProgress(const ProviderName& provider) const;

  // What a request waits for and other pools of the provider could take, too.
  struct Awaited {
    int turns = 0;  // launches that wait for their turn under max-concurrency
    std::set<std::string> resources;
    std::set<LabelName> labels;  // that the cloud has refused to it
    bool empty() const { return turns == 0 && resources.empty() && labels.empty(); }
  };
  // Records what the request waits for. An empty `awaited`: it no longer waits.
  void Await(const ProviderName& provider, const sched::ServiceOrder& order, Awaited awaited);
  // The sum over all requests, or over those before `before`.
  Awaited AwaitedIn(const ProviderName& provider, const sched::ServiceOrder* before = nullptr) const;

  // The cloud has refused what seemed to fit: it counts as full until `until`.
  void CloudRefused(const ProviderName& provider, SteadyTime until) { full_until_[provider] = until; }
  SteadyTime CloudFullUntil(const ProviderName& provider) const;
  // When the first of the clouds that are full now stops counting as full; SteadyTime::max(): none is full.
  SteadyTime NextCloudFree(SteadyTime now) const;

  // Whether a part of this launcher has claimed the free node and is about to lock it. The cache does not
  // offer claimed nodes, and a claimed node cannot be claimed again.
  bool IsClaimed(const NodeId& node) const { return claimed_.contains(node); }

  // A free node was claimed, or is offered again.
  Subscription OnClaim(std::function<void(const NodeId&)> listener) {
    return claim_listeners_.Add(std::move(listener));
  }

  // Call when capacity counted here is free again, or when other requests wait for it than before.
  void CapacityChanged() { listeners_.Notify(); }
  Subscription OnCapacityChange(std::function<void()> listener) {
    return listeners_.Add(std::move(listener));
  }

 private:
  friend class NodeClaim;
  friend class Reservation;
  struct Entry {
    PoolKey pool;
    Resources need;
    std::optional<NodeId> node;  // its key in by_node_
  };
  std::uint64_t Add(const PoolKey& pool, const Resources& need);
  void Release(std::uint64_t id);

  store::NodeCache& nodes_;
  std::map<std::uint64_t, Entry> entries_;
  std::map<NodeId, std::uint64_t> by_node_;
  std::map<PoolKey, ResourceSum> by_pool_;
  std::map<ProviderName, ResourceSum> by_provider_;
  std::map<ProviderName, int> launches_;
  std::map<ProviderName, std::map<sched::ServiceOrder, Awaited>> awaited_;
  std::map<ProviderName, SteadyTime> full_until_;
  std::set<NodeId> claimed_;
  std::uint64_t last_id_ = 0;
  Listeners<> listeners_;
  Listeners<const NodeId&> claim_listeners_;
  Subscription subscription_;
};

}  // namespace nodepool::launcher
