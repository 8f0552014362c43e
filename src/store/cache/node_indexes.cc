#include "store/cache/node_indexes.h"

#include "model/lease.h"

namespace nodepool::store {
namespace {

template <class Map, class Key>
void Insert(Map& map, const Key& key, const NodeId& id) {
  map[key].insert(id);
}

template <class Map, class Key>
void Erase(Map& map, const Key& key, const NodeId& id) {
  auto it = map.find(key);
  if (it == map.end()) return;
  it->second.erase(id);
  if (it->second.empty()) map.erase(it);
}

template <class Map, class Key>
void Count(Map& map, const Key& key, int by) {
  if ((map[key] += by) == 0) map.erase(key);
}

template <class Map, class Key>
void Sum(Map& map, const Key& key, const Resources& resources, int sign) {
  ResourceSum& sum = map[key];
  if (sign > 0) {
    sum.Add(resources);
  } else {
    sum.Subtract(resources);
  }
  if (sum.total().empty()) map.erase(key);
}

LabelName FirstLabel(const Node& node) { return node.type.empty() ? LabelName() : node.type.front(); }

std::set<std::string> Names(const Node& node) {
  std::set<std::string> names;
  if (node.hostname) names = {*node.hostname, node.hostname->substr(0, node.hostname->find('.'))};
  if (node.external_id.is_string()) names.emplace(node.external_id.get_string());
  names.erase("");
  return names;
}

// A node may name a label twice.
std::set<LabelName> Labels(const Node& node) { return {node.type.begin(), node.type.end()}; }

}  // namespace

void NodeIndexes::Add(const StoredNode& node) {
  const Node& record = node.record;
  PoolKey pool{record.provider, record.pool};
  if (record.is_free()) {
    for (const LabelName& label : Labels(record)) Count(free_count, label, 1);
    InsertFree(node);
  }
  if (!record.allocated_to.empty()) Insert(by_request, record.allocated_to, node.id);
  if (record.state) Insert(by_state, *record.state, node.id);
  Insert(by_provider, record.provider, node.id);
  if (std::optional<std::string> job = HeldForJob(record)) Insert(held_by_job, *job, node.id);
  if (std::optional<std::string> client = HolderOf(record)) Insert(held_by_client, *client, node.id);
  Count(pool_sizes, pool, 1);
  pools[record.provider].insert(pool);
  CountUse(node, 1);
}

void NodeIndexes::Remove(const StoredNode& node) {
  const Node& record = node.record;
  PoolKey pool{record.provider, record.pool};
  if (record.is_free()) {
    for (const LabelName& label : Labels(record)) Count(free_count, label, -1);
    EraseFree(node);
  }
  if (!record.allocated_to.empty()) Erase(by_request, record.allocated_to, node.id);
  if (record.state) Erase(by_state, *record.state, node.id);
  Erase(by_provider, record.provider, node.id);
  if (std::optional<std::string> job = HeldForJob(record)) Erase(held_by_job, *job, node.id);
  if (std::optional<std::string> client = HolderOf(record)) Erase(held_by_client, *client, node.id);
  Count(pool_sizes, pool, -1);
  if (!pool_sizes.contains(pool)) {
    auto it = pools.find(record.provider);
    it->second.erase(pool);
    if (it->second.empty()) pools.erase(it);
  }
  CountUse(node, -1);
}

void NameIndex::Add(const StoredNode& node) {
  for (const std::string& name : Names(node.record)) Insert(by_name, name, node.id);
}

void NameIndex::Remove(const StoredNode& node) {
  for (const std::string& name : Names(node.record)) Erase(by_name, name, node.id);
}

void NodeIndexes::SetAside(const NodeId& id, const StoredNode* node) {
  aside.insert(id);
  if (node != nullptr) EraseFree(*node);
}

void NodeIndexes::PutBack(const NodeId& id, const StoredNode* node) {
  aside.erase(id);
  if (node != nullptr && node->record.is_free()) InsertFree(*node);
}

void NodeIndexes::InsertFree(const StoredNode& node) {
  if (aside.contains(node.id)) return;
  PoolKey pool{node.record.provider, node.record.pool};
  for (const LabelName& label : Labels(node.record)) Insert(free, PoolLabel(pool, label), node.id);
}

void NodeIndexes::EraseFree(const StoredNode& node) {
  PoolKey pool{node.record.provider, node.record.pool};
  for (const LabelName& label : Labels(node.record)) Erase(free, PoolLabel(pool, label), node.id);
}

void NodeIndexes::CountUse(const StoredNode& node, int sign) {
  const Node& record = node.record;
  PoolKey pool{record.provider, record.pool};
  LabelName label = FirstLabel(record);
  if (record.resources) {
    Sum(used_by_pool, pool, *record.resources, sign);
    if (record.tenant_name) Sum(used_by_tenant, *record.tenant_name, *record.resources, sign);
    return;
  }
  std::map<LabelName, int>& of_pool = unknown_by_pool[pool];
  Count(of_pool, label, sign);
  if (of_pool.empty()) unknown_by_pool.erase(pool);
  if (!record.tenant_name) return;
  std::map<PoolLabel, int>& of_tenant = unknown_by_tenant[*record.tenant_name];
  Count(of_tenant, PoolLabel(pool, label), sign);
  if (of_tenant.empty()) unknown_by_tenant.erase(*record.tenant_name);
}

}  // namespace nodepool::store
