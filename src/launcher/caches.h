#pragma once

#include <set>

#include "async/task_group.h"
#include "async/wake_loop.h"
#include "store/cache/component_registry.h"
#include "store/cache/image_cache.h"
#include "store/cache/job_cache.h"
#include "store/cache/lease_cache.h"
#include "store/cache/node_cache.h"
#include "store/cache/pause_cache.h"
#include "store/cache/request_cache.h"

namespace nodepool::launcher {

// The caches of a launcher.
struct Caches {
  Caches(Loop& loop, zk::Client& client);

  // Ends when the registry's directories exist; the caches are filled afterwards.
  Task<> Start();
  Task<> WaitSynced();
  Task<> Stop();

  // Whether all caches are complete; false while ZooKeeper is away.
  bool synced() const;
  // The same; if not, wakes `loop` as soon as they are complete. `loop` outlives the caches.
  bool SyncedOrWake(WakeLoop& loop);

  store::NodeCache nodes;
  store::RequestCache requests;
  store::RequestLockCache request_locks;
  store::ImageCache images;
  store::JobCache jobs;
  store::LeaseCache leases;
  store::PauseCache pauses;
  store::ComponentRegistry registry;

 private:
  Task<> WakeWhenSynced();

  std::set<WakeLoop*> to_wake_;
  TaskGroup tasks_;
};

}  // namespace nodepool::launcher
