#include "store/cache/node_cache.h"

#include <utility>

#include "base/find_or_empty.h"
#include "store/cache/node_indexes.h"
#include "store/decode.h"

namespace nodepool::store {
namespace {

// Copies of all of them would make the work for each change grow with their number.
Contenders FirstOf(const Contenders& contenders) {
  return contenders.empty() ? Contenders() : Contenders{*contenders.begin()};
}

}  // namespace

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

const FewNodes& NodeCache::OfRequest(const RequestId& request) const {
  return FindOrEmpty(Indexes().by_request, request);
}

const std::set<NodeId>& NodeCache::OfProvider(const ProviderName& provider) const {
  return FindOrEmpty(Indexes().by_provider, provider);
}

const std::set<NodeId>& NodeCache::InState(NodeState state) const {
  return FindOrEmpty(Indexes().by_state, state);
}

const std::set<NodeId>& NodeCache::Named(const std::string& name) const {
  if (!names_) {
    names_ = std::make_unique<NameIndex>();
    for (const auto& [id, node] : nodes_) names_->Add(node);
  }
  return FindOrEmpty(names_->by_name, name);
}

const std::map<std::string, std::set<NodeId>>& NodeCache::HeldByJob() const { return Indexes().held_by_job; }

const std::set<NodeId>& NodeCache::HeldBy(const std::string& client) const {
  return FindOrEmpty(Indexes().held_by_client, client);
}

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

std::vector<ProviderName> NodeCache::ProvidersWithNodes() const {
  std::vector<ProviderName> providers;
  for (const auto& [provider, pools] : Indexes().pools) providers.push_back(provider);
  return providers;
}

zk::TreeCache::Interest NodeCache::InterestIn(std::string_view path) const {
  switch (paths::ParseBelowNodes(path).part) {
    case paths::BelowNodes::Part::kRecord:
      return zk::TreeCache::Interest::kData;
    case paths::BelowNodes::Part::kContender:
      return zk::TreeCache::Interest::kExistence;
    case paths::BelowNodes::Part::kOther:
      break;
  }
  return zk::TreeCache::Interest::kNone;
}

void NodeCache::OnNode(const std::string& path, const zk::NodeData& node) {
  paths::BelowNodes place = paths::ParseBelowNodes(path);
  if (place.part == paths::BelowNodes::Part::kRecord) {
    OnRecord(place.id, path, node);
  } else if (place.part == paths::BelowNodes::Part::kContender) {
    OnContender(place.id, place.contender, true);
  }
}

void NodeCache::OnGone(const std::string& path) {
  paths::BelowNodes place = paths::ParseBelowNodes(path);
  if (place.part == paths::BelowNodes::Part::kRecord) {
    malformed_.Discard(path);
    empty_.erase(place.id);
    Replace(place.id, std::nullopt);
    contenders_.erase(place.id);
  } else if (place.part == paths::BelowNodes::Part::kContender) {
    OnContender(place.id, place.contender, false);
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

void NodeCache::OnContender(const NodeId& id, const std::string& contender, bool is_there) {
  auto change = [&](Contenders& contenders) {
    if (is_there) {
      contenders.insert(contender);
    } else {
      contenders.erase(contender);
    }
  };
  if (auto listed = nodes_.find(id); listed != nodes_.end()) {
    StoredNode& node = listed->second;
    bool was_locked = node.is_locked();
    change(node.contenders);
    if (node.is_locked() == was_locked) return;
    StoredNode before = node;
    before.contenders = was_locked ? Contenders{contender} : Contenders();
    listeners_.Notify(id, &before, &node);
    return;
  }
  auto it = contenders_.try_emplace(id).first;
  change(it->second);
  if (it->second.empty()) contenders_.erase(it);
}

void NodeCache::Replace(const NodeId& id, std::optional<StoredNode> after) {
  std::optional<StoredNode> before;
  Contenders contenders;
  if (auto it = nodes_.find(id); it != nodes_.end()) {
    if (indexes_) indexes_->Remove(it->second);
    if (names_) names_->Remove(it->second);
    before = std::move(it->second);
    contenders = std::exchange(before->contenders, FirstOf(before->contenders));
    nodes_.erase(it);
  } else if (auto unlisted = contenders_.extract(id)) {
    contenders = std::move(unlisted.mapped());
  }
  const StoredNode* now = nullptr;
  if (after) {
    after->contenders = std::move(contenders);
    if (indexes_) indexes_->Add(*after);
    if (names_) names_->Add(*after);
    now = &nodes_.emplace(id, std::move(*after)).first->second;
  } else if (!contenders.empty()) {
    contenders_[id] = std::move(contenders);
  }
  if (before || now != nullptr) listeners_.Notify(id, before ? &*before : nullptr, now);
}

}  // namespace nodepool::store
