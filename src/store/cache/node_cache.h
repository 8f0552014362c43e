#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/cache/node_indexes.h"
#include "store/cache/record_cache.h"

namespace nodepool::store {

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
  const Resources& UsedByTenant(const std::string& tenant) const;
  // Nodes of the pool without `resources`, counted by their first label; the quota calculation adds
  // the label's need for each.
  const std::map<LabelName, int>& WithoutResources(const PoolKey& pool) const;
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

}  // namespace nodepool::store
