#pragma once

#include <set>
#include <vector>

#include "async/task_group.h"
#include "async/wake_loop.h"
#include "store/cache/component_registry.h"
#include "store/cache/image_cache.h"
#include "store/cache/job_cache.h"
#include "store/cache/lease_cache.h"
#include "store/cache/node_cache.h"
#include "store/cache/request_cache.h"
#include "store/cache/runner_cache.h"

namespace nodepool::store {

// Caches that are waited for and stopped together.
class CacheGroup {
 public:
  static constexpr const char* kNotComplete = "The records are not read yet, or ZooKeeper is away.";

  // Both outlive it.
  CacheGroup(Loop& loop, zk::Client& client);

  // A program starts those that it needs, in this order; the others stay empty.
  const std::vector<Cache*>& all() const { return all_; }

  // Whether all that were started are complete; false before, and while ZooKeeper is away.
  bool synced() const;
  // Throws Error(kRetry) unless they are.
  void RequireSynced() const;
  Task<> WaitSynced();
  // The same as synced(), after the start; if they are not, wakes `loop` as soon as they are. `loop` lives
  // until Stop() has ended.
  bool SyncedOrWake(WakeLoop& loop);
  Task<> Stop();

 private:
  friend class Cache;  // adds itself

  bool IsAnyIncomplete() const;
  Task<> WakeWhenSynced();

  Loop& loop_;
  zk::Client& client_;
  std::vector<Cache*> all_;
  std::set<WakeLoop*> to_wake_;
  TaskGroup tasks_;
};

// The caches of all kinds of records.
struct Caches : CacheGroup {
  using CacheGroup::CacheGroup;

  ComponentRegistry components{*this};
  NodeCache nodes{*this};
  RequestCache requests{*this};
  RequestLockCache request_locks{*this};
  ImageCache images{*this};
  JobCache jobs{*this};
  LeaseCache leases{*this};
  RecordCache<ProviderPause> pauses{*this};  // one that cannot be read pauses, too
  RecordCache<Breaker> breakers{*this};      // one that cannot be read counts as closed
  RunnerCache runners{*this};
};

}  // namespace nodepool::store
