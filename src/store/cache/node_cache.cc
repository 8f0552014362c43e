#include "store/cache/node_cache.h"

#include <utility>

#include "base/find_or_empty.h"

namespace nodepool::store {
namespace {

// Copies of all of them would make the work for each change grow with their number.
Contenders FirstOf(const Contenders& contenders) {
  return contenders.empty() ? Contenders() : Contenders{*contenders.begin()};
}

}  // namespace

const std::set<NodeId>& NodeCache::FreeNodes(const PoolKey& pool, const LabelName& label) const {
  return free_.EntryOf({pool, label});
}

std::set<NodeCache::PoolLabel> NodeCache::FreePlaces(const StoredNode& node) const {
  std::set<PoolLabel> places;
  if (aside_.contains(node.id)) return places;
  for (const LabelName& label : FreeLabels(node)) {
    places.emplace(PoolKey{node.record.provider, node.record.pool}, label);
  }
  return places;
}

void NodeCache::SetAside(const NodeId& id) {
  if (const StoredNode* node = Find(id)) free_.Remove(id, *node);
  aside_.insert(id);
}

void NodeCache::PutBack(const NodeId& id) {
  aside_.erase(id);
  if (const StoredNode* node = Find(id)) free_.Add(id, *node);
}

std::size_t NodeCache::FreeCount(const LabelName& label) const { return free_count_.EntryOf(label).count; }

const FewNodes& NodeCache::OfRequest(const RequestId& request) const { return by_request_.EntryOf(request); }

const std::set<NodeId>& NodeCache::OfProvider(const ProviderName& provider) const {
  return by_provider_.EntryOf(provider);
}

const std::set<NodeId>& NodeCache::InState(NodeState state) const { return by_state_.EntryOf(state); }

const std::set<NodeId>& NodeCache::Named(const std::string& name) const { return by_name_.EntryOf(name); }

const std::map<std::string, std::set<NodeId>>& NodeCache::HeldByJob() const { return held_by_job_.entries(); }

const std::set<NodeId>& NodeCache::HeldBy(const std::string& client) const {
  return held_by_client_.EntryOf(client);
}

const Resources& NodeCache::UsedBy(const PoolKey& pool) const {
  return FindOrEmpty(PoolsWithNodes(pool.provider), pool.pool).used.total();
}

const Resources& NodeCache::UsedByTenant(const std::string& tenant) const {
  return use_by_tenant_.EntryOf(tenant).used.total();
}

const std::map<LabelName, int>& NodeCache::WithoutResources(const PoolKey& pool) const {
  return FindOrEmpty(PoolsWithNodes(pool.provider), pool.pool).unknown;
}

const std::map<PoolName, PoolUse>& NodeCache::PoolsWithNodes(const ProviderName& provider) const {
  return use_.EntryOf(provider).pools;
}

std::vector<ProviderName> NodeCache::ProvidersWithNodes() const {
  std::vector<ProviderName> providers;
  for (const auto& [provider, nodes] : by_provider_.entries()) providers.push_back(provider);
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

void NodeCache::OnZnode(const std::string& path, const zk::NodeData& node) {
  paths::BelowNodes place = paths::ParseBelowNodes(path);
  if (place.part == paths::BelowNodes::Part::kRecord) {
    OnRecord(place.id, path, node);
  } else if (place.part == paths::BelowNodes::Part::kContender) {
    OnContender(place.id, place.contender, true);
  }
}

void NodeCache::OnZnodeGone(const std::string& path) {
  paths::BelowNodes place = paths::ParseBelowNodes(path);
  if (place.part == paths::BelowNodes::Part::kRecord) {
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
  Replace(id, Read<StoredNode>(id, path, node));
}

void NodeCache::OnContender(const NodeId& id, const std::string& contender, bool is_there) {
  auto change = [&](Contenders& contenders) {
    if (is_there) {
      contenders.insert(contender);
    } else {
      contenders.erase(contender);
    }
  };
  if (StoredNode* node = records_.FindToChange(id)) {
    bool was_locked = node->is_locked();
    change(node->contenders);
    if (node->is_locked() == was_locked) return;
    StoredNode before = *node;
    before.contenders = was_locked ? Contenders{contender} : Contenders();
    return records_.Notify(id, &before, node);
  }
  auto it = contenders_.try_emplace(id).first;
  change(it->second);
  if (it->second.empty()) contenders_.erase(it);
}

void NodeCache::Replace(const NodeId& id, std::optional<StoredNode> after) {
  Contenders contenders;
  if (StoredNode* before = records_.FindToChange(id)) {
    contenders = std::exchange(before->contenders, FirstOf(before->contenders));
  } else if (auto unlisted = contenders_.extract(id)) {
    contenders = std::move(unlisted.mapped());
  }
  if (after) {
    after->contenders = std::move(contenders);
  } else if (!contenders.empty()) {
    contenders_[id] = std::move(contenders);
  }
  records_.Replace(id, std::move(after));
}

}  // namespace nodepool::store
