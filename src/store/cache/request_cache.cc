#include "store/cache/request_cache.h"

#include "base/find_or_empty.h"
#include "store/decode.h"

namespace nodepool::store {

RequestCache::RequestCache(Loop& loop, zk::Client& client)
    : loop_(loop),
      malformed_(log::Logger("nodepool.zk.ZooKeeper")),
      tree_(loop, client, std::string(paths::kRequests), *this) {}

RequestCache::~RequestCache() = default;

Subscription RequestCache::OnChange(Listener listener) const { return listeners_.Add(std::move(listener)); }

const StoredRequest* RequestCache::Find(const RequestId& id) const {
  auto it = requests_.find(id);
  return it == requests_.end() ? nullptr : &it->second;
}

const std::set<RequestId>& RequestCache::InState(RequestState state) const {
  return FindOrEmpty(by_state_, state);
}

zk::TreeCache::Interest RequestCache::InterestIn(std::string_view path) const {
  return paths::ParseRequest(path) ? zk::TreeCache::Interest::kData : zk::TreeCache::Interest::kNone;
}

void RequestCache::OnNode(const std::string& path, const zk::NodeData& node) {
  std::optional<RequestId> id = paths::ParseRequest(path);
  if (!id) return;
  std::optional<StoredRequest> after;
  try {
    if (!ParseRequestId(*id)) throw Error(Verdict::kInvalid, "the name is not <priority>-<number>");
    after = Decode<StoredRequest>(*id, node, loop_.Now());
    malformed_.Discard(path);
  } catch (const Error& error) {
    malformed_.Report(path, node.stat, error.message());
  }
  Replace(*id, std::move(after));
}

void RequestCache::OnGone(const std::string& path) {
  std::optional<RequestId> id = paths::ParseRequest(path);
  if (!id) return;
  malformed_.Discard(path);
  Replace(*id, std::nullopt);
}

void RequestCache::Replace(const RequestId& id, std::optional<StoredRequest> after) {
  std::optional<StoredRequest> before;
  if (auto it = requests_.find(id); it != requests_.end()) {
    before = std::move(it->second);
    requests_.erase(it);
    if (before->record.state) by_state_[*before->record.state].erase(id);
  }
  const StoredRequest* now = nullptr;
  if (after) {
    if (after->record.state) by_state_[*after->record.state].insert(id);
    now = &requests_.emplace(id, std::move(*after)).first->second;
  }
  if (before || now != nullptr) listeners_.Notify(id, before ? &*before : nullptr, now);
}

RequestLockCache::RequestLockCache(Loop& loop, zk::Client& client)
    : tree_(loop, client, std::string(paths::kRequestLocks), *this) {}

RequestLockCache::~RequestLockCache() = default;

Subscription RequestLockCache::OnChange(Listener listener) const {
  return listeners_.Add(std::move(listener));
}

bool RequestLockCache::IsLocked(const RequestId& id) const {
  return !FindOrEmpty(directories_, id).contenders.empty();
}

zk::TreeCache::Interest RequestLockCache::InterestIn(std::string_view) const {
  return zk::TreeCache::Interest::kExistence;
}

void RequestLockCache::OnNode(const std::string& path, const zk::NodeData&) {
  std::optional<paths::BelowRequestLocks> place = paths::ParseBelowRequestLocks(path);
  if (!place) return;
  Directory& directory = directories_[place->id];
  if (!place->contender.empty()) directory.contenders.insert(place->contender);
  listeners_.Notify(place->id);
}

void RequestLockCache::OnGone(const std::string& path) {
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
