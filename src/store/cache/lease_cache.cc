#include "store/cache/lease_cache.h"

#include "base/find_or_empty.h"
#include "store/decode.h"

namespace nodepool::store {
namespace {

template <class Key>
const LeaseId& IdIn(const std::map<Key, LeaseId>& index, const Key& key) {
  return FindOrEmpty(index, key);
}

}  // namespace

LeaseCache::LeaseCache(Loop& loop, zk::Client& client)
    : malformed_(log::Logger("nodepool.zk.ZooKeeper")),
      tree_(loop, client, std::string(paths::kLeases), *this) {}

LeaseCache::~LeaseCache() = default;

const StoredLease* LeaseCache::Find(const LeaseId& id) const {
  auto it = leases_.find(id);
  return it == leases_.end() ? nullptr : &it->second;
}

const std::set<LeaseId>& LeaseCache::OfClient(const std::string& client) const {
  return FindOrEmpty(by_client_, client).leases;
}

std::size_t LeaseCache::NodeCountOf(const std::string& client) const {
  return FindOrEmpty(by_client_, client).nodes;
}

const StoredLease* LeaseCache::WaitingFor(const RequestId& request) const {
  return Find(IdIn(by_request_, request));
}

const StoredLease* LeaseCache::Holding(const NodeId& node) const { return Find(IdIn(by_node_, node)); }

zk::TreeCache::Interest LeaseCache::InterestIn(std::string_view path) const {
  return paths::ParseLease(path) ? zk::TreeCache::Interest::kData : zk::TreeCache::Interest::kNone;
}

void LeaseCache::OnNode(const std::string& path, const zk::NodeData& node) {
  std::optional<LeaseId> id = paths::ParseLease(path);
  if (!id) return;
  std::optional<StoredLease> after;
  try {
    after = Decode<StoredLease>(*id, node, WallTime());
    malformed_.Discard(path);
  } catch (const Error& error) {
    malformed_.Report(path, node.stat, error.message());
  }
  Replace(*id, std::move(after));
}

void LeaseCache::OnGone(const std::string& path) {
  std::optional<LeaseId> id = paths::ParseLease(path);
  if (!id) return;
  malformed_.Discard(path);
  Replace(*id, std::nullopt);
}

void LeaseCache::Index(const StoredLease& lease) {
  ClientTotal& total = by_client_[lease.record.client];
  total.leases.insert(lease.id);
  total.nodes += lease.record.node_count();
  if (!lease.record.request.empty()) by_request_[lease.record.request] = lease.id;
  for (const NodeId& node : lease.record.nodes) by_node_[node] = lease.id;
}

void LeaseCache::RemoveFromIndexes(const StoredLease& lease) {
  auto total = by_client_.find(lease.record.client);
  total->second.nodes -= lease.record.node_count();
  total->second.leases.erase(lease.id);
  if (total->second.leases.empty()) by_client_.erase(total);
  if (IdIn(by_request_, lease.record.request) == lease.id) by_request_.erase(lease.record.request);
  for (const NodeId& node : lease.record.nodes) {
    if (IdIn(by_node_, node) == lease.id) by_node_.erase(node);
  }
}

void LeaseCache::Replace(const LeaseId& id, std::optional<StoredLease> after) {
  std::optional<StoredLease> before;
  if (auto it = leases_.find(id); it != leases_.end()) {
    RemoveFromIndexes(it->second);
    before = std::move(it->second);
    leases_.erase(it);
  }
  const StoredLease* now = nullptr;
  if (after) {
    Index(*after);
    now = &leases_.emplace(id, std::move(*after)).first->second;
  }
  if (before || now != nullptr) listeners_.Notify(id, before ? &*before : nullptr, now);
}

}  // namespace nodepool::store
