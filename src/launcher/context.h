#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "async/blocking_pool.h"
#include "async/loop.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "driver/loading/load_config.h"
#include "launcher/breakers/breakers.h"
#include "launcher/ledger.h"
#include "store/cache/caches.h"
#include "store/store.h"

namespace nodepool::launcher {

// Periods and delays of what no event triggers. Not part of the public configuration (launcher.md 2); tests
// shorten them.
struct Intervals {
  Duration cleanup = std::chrono::seconds(60);
  Duration lost_request_grace = std::chrono::seconds(2);           // a cache may lag behind a lock
  Duration request_lock_removal = std::chrono::milliseconds(200);  // those of this time are removed together
  Duration quick_delete = std::chrono::milliseconds(100);          // a record shows that it takes longer
  Duration delete_timeout = std::chrono::seconds(600);
  Duration delete_retry = std::chrono::seconds(5);
  Duration delete_retry_max = std::chrono::seconds(60);
  Duration make_room_holdoff = std::chrono::minutes(5);
  Duration yield_after = std::chrono::minutes(2);
  Duration refusal_memory = std::chrono::minutes(5);  // longer than a request takes to give way
  Duration reuse_retry = std::chrono::minutes(1);     // of a free node that could not be taken
  Duration init_node_age = std::chrono::minutes(5);   // also of one without a provider
  Duration min_ready_holdoff = std::chrono::seconds(60);
  Duration min_ready_pause =
      std::chrono::seconds(5);  // min. pause after a failure, when capacity has changed
  Duration unannounced_change = std::chrono::seconds(1);  // of a driver, after which it counts at the latest
  Duration provider_start_timeout = std::chrono::seconds(60);
  Duration provider_probe = std::chrono::seconds(10);  // of a driver that failed to answer (D-26)
  Duration quota_probe = std::chrono::seconds(30);  // while a request waits for what others use of the cloud
  Duration leak_cleanup_timeout = std::chrono::seconds(600);
  Duration provider_retry = std::chrono::seconds(1);
  Duration provider_retry_max = std::chrono::seconds(60);
};

// What a launcher does itself, and what it leaves to other launchers of the same providers
// (operations.md 13.1).
struct Duties {
  // If not, requests get nodes that are ready already, or wait, and min-ready is ignored.
  bool launches = true;
  // If not, no node is deleted or marked `deleting`, nothing is cleaned up, and job events are ignored.
  bool deletes = true;
};

// What the launcher's parts share. Everything outlives them.
struct Context {
  // In force now; replaced as a whole. Read it again after each await.
  std::shared_ptr<const driver::LoadedConfig> config;
  Loop& loop;
  Random& random;
  BlockingPool& blocking_pool;
  metrics::Metrics& metrics;
  store::Store& store;
  Ledger& ledger;
  Breakers& breakers;
  store::Caches& caches;
  std::string hostname;  // of this launcher, short, as it is announced
  Intervals intervals;
  Duties duties;
};

}  // namespace nodepool::launcher
