#include "store/cache/node_cache.h"

#include "base/find_or_empty.h"
#include "store/cache/node_indexes.h"
#include "store/decode.h"

namespace nodepool::store {

NodeCache::NodeCache(Loop& loop, zk::Client& client)
    : loop_(loop),
      malformed_(log::Logger("nodepool.zk.ZooKeeper")),
      tree_(loop, client, std::string(paths::kNodes), *this) {}

NodeCache::~NodeCache() = default;

Subscription NodeCache::OnChange(Listener listener) const { return listeners_.Add(std::move(listener)); }

const StoredNode* NodeCache::Find(const NodeId& id) const {
  auto it = nodes_.find(id);
  return it == nodes_.end() ? nullptr : &it->second;
}

NodeIndexes& NodeCache::Indexes() const {
  if (!indexes_) {
    indexes_ = std::make_unique<NodeIndexes>();
    for (const auto& [id, node] : nodes_) indexes_->Add(node);
  }
  return *indexes_;
}

const std::set<NodeId>& NodeCache::FreeNodes(const PoolKey& pool, const LabelName& label) const {
  return FindOrEmpty(Indexes().free, NodeIndexes::PoolLabel(pool, label));
}

void NodeCache::SetAside(const NodeId& id) { Indexes().SetAside(id, Find(id)); }

void NodeCache::PutBack(const NodeId& id) { Indexes().PutBack(id, Find(id)); }

std::size_t NodeCache::FreeCount(const LabelName& label) const {
  return FindOrEmpty(Indexes().free_count, label);
}

const std::set<NodeId>& NodeCache::OfRequest(const RequestId& request) const {
  return FindOrEmpty(Indexes().by_request, request);
}

const std::set<NodeId>& NodeCache::OfProvider(const ProviderName& provider) const {
  return FindOrEmpty(Indexes().by_provider, provider);
}

const std::set<NodeId>& NodeCache::InState(NodeState state) const {
  return FindOrEmpty(Indexes().by_state, state);
}

const std::set<NodeId>& NodeCache::Named(const std::string& name) const {
  return FindOrEmpty(Indexes().by_name, name);
}

const std::map<std::string, std::set<NodeId>>& NodeCache::HeldByJob() const { return Indexes().held_by_job; }

const Resources& NodeCache::UsedBy(const PoolKey& pool) const {
  return FindOrEmpty(Indexes().used_by_pool, pool).total();
}

const Resources& NodeCache::UsedByTenant(const std::string& tenant) const {
  return FindOrEmpty(Indexes().used_by_tenant, tenant).total();
}

const std::map<LabelName, int>& NodeCache::WithoutResources(const PoolKey& pool) const {
  return FindOrEmpty(Indexes().unknown_by_pool, pool);
}

const std::map<std::pair<PoolKey, LabelName>, int>& NodeCache::TenantWithoutResources(
    const std::string& tenant) const {
  return FindOrEmpty(Indexes().unknown_by_tenant, tenant);
}

const std::set<PoolKey>& NodeCache::PoolsWithNodes(const ProviderName& provider) const {
  return FindOrEmpty(Indexes().pools, provider);
}

bool NodeCache::WantsData(std::string_view path) const {
  return paths::ParseBelowNodes(path).part == paths::BelowNodes::Part::kRecord;
}

void NodeCache::OnNode(const std::string& path, const zk::NodeData& node) {
  paths::BelowNodes place = paths::ParseBelowNodes(path);
  if (place.part == paths::BelowNodes::Part::kRecord) {
    OnRecord(place.id, path, node);
  } else if (place.part == paths::BelowNodes::Part::kContender) {
    contenders_[place.id].insert(place.contender);
    OnContenders(place.id);
  }
}

void NodeCache::OnGone(const std::string& path) {
  paths::BelowNodes place = paths::ParseBelowNodes(path);
  if (place.part == paths::BelowNodes::Part::kRecord) {
    malformed_.Discard(path);
    empty_.erase(place.id);
    contenders_.erase(place.id);
    Replace(place.id, std::nullopt);
  } else if (place.part == paths::BelowNodes::Part::kContender) {
    auto it = contenders_.find(place.id);
    if (it == contenders_.end()) return;
    it->second.erase(place.contender);
    if (it->second.empty()) contenders_.erase(it);
    OnContenders(place.id);
  }
}

void NodeCache::OnRecord(const NodeId& id, const std::string& path, const zk::NodeData& node) {
  if (node.data.empty()) {
    malformed_.Discard(path);
    empty_.insert(id);
    Replace(id, std::nullopt);
    return;
  }
  empty_.erase(id);
  std::optional<StoredNode> after;
  try {
    after = Decode<StoredNode>(id, node, loop_.Now());
    malformed_.Discard(path);
  } catch (const Error& error) {
    malformed_.Report(path, node.stat, error.message());
  }
  Replace(id, std::move(after));
}

void NodeCache::OnContenders(const NodeId& id) {
  auto it = nodes_.find(id);
  if (it == nodes_.end()) return;
  StoredNode before = it->second;
  it->second.contenders = FindOrEmpty(contenders_, id);
  listeners_.Notify(id, &before, &it->second);
}

void NodeCache::Replace(const NodeId& id, std::optional<StoredNode> after) {
  std::optional<StoredNode> before;
  if (auto it = nodes_.find(id); it != nodes_.end()) {
    if (indexes_) indexes_->Remove(it->second);
    before = std::move(it->second);
    nodes_.erase(it);
  }
  const StoredNode* now = nullptr;
  if (after) {
    after->contenders = FindOrEmpty(contenders_, id);
    if (indexes_) indexes_->Add(*after);
    now = &nodes_.emplace(id, std::move(*after)).first->second;
  }
  if (before || now != nullptr) listeners_.Notify(id, before ? &*before : nullptr, now);
}

}  // namespace nodepool::store
