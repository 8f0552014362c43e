#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/listeners.h"
#include "base/subscription.h"
#include "store/malformed.h"
#include "store/records.h"
#include "zk/recipes/tree_cache.h"

namespace nodepool::store {

struct NodeIndexes;
struct NameIndex;

// Every node of the tree, in memory, with the indexes the launcher needs. Fed by
// one recursive watch; lock contenders are known without reading anything.
//
// A record that cannot be parsed is reported once per version, counted, and not
// listed (D-08); one with empty data is listed by empty_nodes() only.
class NodeCache : private zk::TreeCache::Listener {
 public:
  // `before` or `after` is null for a node that appeared or vanished. Called after the indexes are up to
  // date, on the loop's thread; also when only is_locked() changed. The pointers are valid during the call.
  // `before` has one contender at most.
  using Listener = std::function<void(const NodeId&, const StoredNode* before, const StoredNode* after)>;

  NodeCache(Loop& loop, zk::Client& client);
  ~NodeCache() override;

  void Start() { tree_.Start(); }
  Task<> Stop() { return tree_.Stop(); }
  Task<> WaitSynced() { return tree_.WaitSynced(); }
  bool synced() const { return tree_.synced(); }
  // Ends when the cache shows everything that any client wrote before this was called.
  Task<> CatchUp() { return tree_.CatchUp(); }

  Subscription OnChange(Listener listener) const;

  const StoredNode* Find(const NodeId& id) const;
  const std::map<NodeId, StoredNode>& all() const { return nodes_; }

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
  const Resources& UsedByTenant(const std::string& tenant) const;
  // Nodes of the pool without `resources`, counted by their first label; the quota calculation adds
  // the label's need for each.
  const std::map<LabelName, int>& WithoutResources(const PoolKey& pool) const;
  // The same for a tenant, by pool and first label.
  const std::map<std::pair<PoolKey, LabelName>, int>& TenantWithoutResources(const std::string& tenant) const;
  // The pools of a provider that have nodes.
  const std::set<PoolKey>& PoolsWithNodes(const ProviderName& provider) const;
  // The providers that have nodes, by name.
  std::vector<ProviderName> ProvidersWithNodes() const;

  std::uint64_t malformed_count() const { return malformed_.count(); }

 private:
  zk::TreeCache::Interest InterestIn(std::string_view path) const override;
  void OnNode(const std::string& path, const zk::NodeData& node) override;
  void OnGone(const std::string& path) override;
  void OnSynced() override {}

  void OnRecord(const NodeId& id, const std::string& path, const zk::NodeData& node);
  void OnContender(const NodeId& id, const std::string& contender, bool is_there);
  void Replace(const NodeId& id, std::optional<StoredNode> after);
  // Built at the first use and kept up to date from then on: users that only iterate over all nodes
  // do without.
  NodeIndexes& Indexes() const;

  Loop& loop_;
  std::map<NodeId, StoredNode> nodes_;
  std::map<NodeId, Contenders> contenders_;  // of nodes that are not listed, or not yet
  std::set<NodeId> empty_;
  MalformedRecords malformed_;
  mutable std::unique_ptr<NodeIndexes> indexes_;
  mutable std::unique_ptr<NameIndex> names_;  // likewise
  Listeners<const NodeId&, const StoredNode*, const StoredNode*> listeners_;
  zk::TreeCache tree_;
};

}  // namespace nodepool::store
