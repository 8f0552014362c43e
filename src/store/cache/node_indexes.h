#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "model/lease.h"
#include "store/records.h"

namespace nodepool::store {

// --- By what NodeCache finds nodes -----------------------------------------
inline const ProviderName& ProviderOf(const StoredNode& node) { return node.record.provider; }
inline std::optional<NodeState> StateOf(const StoredNode& node) { return node.record.state; }
inline std::optional<std::string> JobHeldFor(const StoredNode& node) { return HeldForJob(node.record); }
inline std::optional<std::string> ClientHolding(const StoredNode& node) { return HolderOf(node.record); }
std::optional<RequestId> RequestOf(const StoredNode& node);
// Of a node with `resources`.
std::optional<std::string> TenantOf(const StoredNode& node);
// Hostname, whole and short, and external id.
std::set<std::string> NamesOf(const StoredNode& node);
// The labels of a ready, unallocated node; none of others. A node may name a label twice.
std::set<LabelName> FreeLabels(const StoredNode& node);

// --- What its indexes sum up -----------------------------------------------
// What the nodes of a pool use.
struct PoolUse {
  std::size_t nodes = 0;
  ResourceSum used;                       // by nodes with `resources`
  std::map<LabelName, int> unknown = {};  // nodes without `resources`, by their first label
};

struct ProviderUse {
  std::map<PoolName, PoolUse> pools;  // those with nodes
  void Add(const StoredNode& node);
  void Remove(const StoredNode& node);
  bool empty() const { return pools.empty(); }
};

struct TenantUse {
  ResourceSum used;
  void Add(const StoredNode& node) { used.Add(*node.record.resources); }
  void Remove(const StoredNode& node) { used.Subtract(*node.record.resources); }
  bool empty() const { return used.total().empty(); }
};

}  // namespace nodepool::store
