#include "store/cache/request_cache.h"

#include "base/find_or_empty.h"

namespace nodepool::store {

bool RequestLockCache::IsLocked(const RequestId& id) const {
  return !FindOrEmpty(directories_, id).contenders.empty();
}

zk::TreeCache::Interest RequestLockCache::InterestIn(std::string_view) const {
  return zk::TreeCache::Interest::kExistence;
}

void RequestLockCache::OnZnode(const std::string& path, const zk::NodeData&) {
  std::optional<paths::BelowRequestLocks> place = paths::ParseBelowRequestLocks(path);
  if (!place) return;
  Directory& directory = directories_[place->id];
  if (!place->contender.empty()) directory.contenders.insert(place->contender);
  listeners_.Notify(place->id);
}

void RequestLockCache::OnZnodeGone(const std::string& path) {
  std::optional<paths::BelowRequestLocks> place = paths::ParseBelowRequestLocks(path);
  if (!place) return;
  if (place->contender.empty()) {
    directories_.erase(place->id);
  } else if (auto it = directories_.find(place->id); it != directories_.end()) {
    it->second.contenders.erase(place->contender);
  }
  listeners_.Notify(place->id);
}

}  // namespace nodepool::store
