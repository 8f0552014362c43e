#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/ids.h"
#include "base/subscription.h"
#include "model/node.h"
#include "sched/requests/fill.h"
#include "store/cache/cached_records.h"

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
  void CloudRefused(const ProviderName& provider, SteadyTime until);
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
  // Something that is counted here for the provider is another.
  Subscription OnChange(std::function<void(const ProviderName&)> listener) {
    return change_listeners_.Add(std::move(listener));
  }

  // Call when the provider's capacity counted here is free again, or when other requests wait for it than
  // before.
  void CapacityChanged(const ProviderName& provider) { capacity_listeners_.Notify(provider); }
  Subscription OnCapacityChange(std::function<void(const ProviderName&)> listener) {
    return capacity_listeners_.Add(std::move(listener));
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
  void EndLaunch(const ProviderName& provider);

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
  Listeners<const NodeId&> claim_listeners_;
  Listeners<const ProviderName&> change_listeners_;
  Listeners<const ProviderName&> capacity_listeners_;
  Subscription subscription_;
};

// What accepted requests of limited tenants need beyond the nodes that already count for the tenant. Without
// it, requests accepted one after the other would each find the tenant's share unused. Kept up to date by the
// changes of the requests' nodes.
class Promises {
 public:
  // `nodes` outlives this.
  explicit Promises(store::NodeCache& nodes);

  // The request was accepted by the pool worker `launcher` and needs `need` in total.
  void Make(const RequestId& request, std::string tenant, Resources need, LauncherId launcher);
  // The request is decided. It is no error if there is no promise.
  void Release(const RequestId& request);

  // What accepted requests of the tenant still need.
  const Resources& Of(const std::string& tenant) const;

 private:
  struct Promise {
    std::string tenant;
    Resources need;
    LauncherId launcher;
    Resources open;  // the part of the need that counts for the tenant
  };

  void Recount(const RequestId& request);
  bool IsPart(const Promise& promise, const Node& node) const;

  store::NodeCache& nodes_;
  std::map<RequestId, Promise> promises_;
  std::map<std::string, ResourceSum> open_;  // by tenant
  Subscription subscription_;
};

}  // namespace nodepool::launcher
