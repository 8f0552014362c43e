#include "launcher/ledger.h"

#include "sched/quota.h"
#include "store/find_or_empty.h"

namespace nodepool::launcher {
namespace {

template <class Map, class Key>
void TakeBack(Map& map, const Key& key, const Resources& need) {
  Resources& sum = map[key];
  sched::Subtract(sum, need);
  std::erase_if(sum, [](const auto& entry) { return entry.second == 0; });
  if (sum.empty()) map.erase(key);
}

}  // namespace

Ledger::Ledger(store::NodeCache& nodes)
    : nodes_(nodes),
      registration_(
          nodes.OnChange([this](const NodeId& id, const store::StoredNode*, const store::StoredNode*) {
            if (auto it = by_node_.find(id); it != by_node_.end()) Release(it->second);
          })) {}

Ledger::EntryId Ledger::Commit(const PoolKey& pool, Resources need,
                               const std::optional<std::string>& tenant) {
  sched::Add(by_pool_[pool], need);
  sched::Add(by_provider_[pool.provider], need);
  if (tenant) sched::Add(by_tenant_[*tenant], need);
  entries_.emplace(++last_id_, Entry{pool, std::move(need), tenant});
  return last_id_;
}

void Ledger::SetNode(EntryId entry, const NodeId& node) {
  if (!entries_.contains(entry)) return;
  if (nodes_.Find(node) != nullptr) return Release(entry);
  by_node_[node] = entry;
}

void Ledger::Release(EntryId id) {
  auto it = entries_.find(id);
  if (it == entries_.end()) return;
  const Entry& entry = it->second;
  TakeBack(by_pool_, entry.pool, entry.need);
  TakeBack(by_provider_, entry.pool.provider, entry.need);
  if (entry.tenant) TakeBack(by_tenant_, *entry.tenant, entry.need);
  entries_.erase(it);
  std::erase_if(by_node_, [id](const auto& node) { return node.second == id; });
}

const Resources& Ledger::PendingIn(const PoolKey& pool) const { return store::FindOrEmpty(by_pool_, pool); }
const Resources& Ledger::PendingIn(const ProviderName& provider) const {
  return store::FindOrEmpty(by_provider_, provider);
}
const Resources& Ledger::PendingOf(const std::string& tenant) const {
  return store::FindOrEmpty(by_tenant_, tenant);
}

int Ledger::LaunchesInProgress(const ProviderName& provider) const {
  auto it = launches_.find(provider);
  return it == launches_.end() ? 0 : it->second;
}

}  // namespace nodepool::launcher
