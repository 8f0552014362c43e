#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "store/records.h"

namespace nodepool::store {

// The indexes of NodeCache. Adding and removing a node are exact opposites; empty entries are
// removed.
struct NodeIndexes {
  using PoolLabel = std::pair<PoolKey, LabelName>;

  void Add(const StoredNode& node);
  void Remove(const StoredNode& node);
  // Between SetAside and PutBack the node is not in `free`. `node` is null when it is not listed.
  void SetAside(const NodeId& id, const StoredNode* node);
  void PutBack(const NodeId& id, const StoredNode* node);

  std::map<PoolLabel, std::set<NodeId>> free;  // without those set aside
  std::set<NodeId> aside;
  std::map<LabelName, std::size_t> free_count;
  std::map<RequestId, FewNodes> by_request;
  std::map<ProviderName, std::set<NodeId>> by_provider;
  std::map<NodeState, std::set<NodeId>> by_state;
  std::map<std::string, std::set<NodeId>> held_by_job;     // those in state hold
  std::map<std::string, std::set<NodeId>> held_by_client;  // likewise
  std::map<PoolKey, std::size_t> pool_sizes;
  std::map<ProviderName, std::set<PoolKey>> pools;
  std::map<PoolKey, ResourceSum> used_by_pool;
  std::map<std::string, ResourceSum> used_by_tenant;
  std::map<PoolKey, std::map<LabelName, int>> unknown_by_pool;
  std::map<std::string, std::map<PoolLabel, int>> unknown_by_tenant;

 private:
  void InsertFree(const StoredNode& node);
  void EraseFree(const StoredNode& node);
  void CountUse(const StoredNode& node, int sign);
};

// Nodes by hostname, whole and short, and external id. An index of its own because few launchers need it and
// it takes as much memory as the others together.
struct NameIndex {
  void Add(const StoredNode& node);
  void Remove(const StoredNode& node);

  std::map<std::string, std::set<NodeId>> by_name;
};

}  // namespace nodepool::store
