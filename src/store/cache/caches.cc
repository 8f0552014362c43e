#include "store/cache/caches.h"

#include <algorithm>
#include <utility>

namespace nodepool::store {

CacheGroup::CacheGroup(Loop& loop, zk::Client& client)
    : loop_(loop), client_(client), tasks_(loop, log::Logger("nodepool.NodePool")) {}

Cache::Cache(CacheGroup& group, Settings settings) : Cache(group.loop_, group.client_, settings) {
  group.all_.push_back(this);
}

bool CacheGroup::IsAnyIncomplete() const {
  return std::ranges::any_of(all_,
                             [](const Cache* cache) { return cache->is_started() && !cache->synced(); });
}

bool CacheGroup::synced() const {
  return std::ranges::any_of(all_, &Cache::is_started) && !IsAnyIncomplete();
}

void CacheGroup::RequireSynced() const {
  if (!synced()) throw Error(Verdict::kRetry, kNotComplete);
}

// One cache may start again while another one is waited for.
Task<> CacheGroup::WaitSynced() {
  while (IsAnyIncomplete()) {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (all_[i]->is_started()) co_await all_[i]->WaitSynced();
    }
  }
}

bool CacheGroup::SyncedOrWake(WakeLoop& loop) {
  if (synced()) return true;
  bool is_waiting = !to_wake_.empty();
  to_wake_.insert(&loop);
  if (!is_waiting) tasks_.Spawn("wait for the caches", WakeWhenSynced());
  return false;
}

Task<> CacheGroup::WakeWhenSynced() {
  co_await WaitSynced();
  for (WakeLoop* loop : std::exchange(to_wake_, {})) loop->Wake();
}

Task<> CacheGroup::Stop() {
  co_await tasks_.Stop();
  for (std::size_t i = all_.size(); i > 0; --i) co_await all_[i - 1]->Stop();
}

}  // namespace nodepool::store
