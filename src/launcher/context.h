#pragma once

#include <set>

#include "async/blocking_pool.h"
#include "async/loop.h"
#include "base/ids.h"
#include "base/metrics/metrics.h"
#include "base/random.h"
#include "driver/loading/load_config.h"
#include "launcher/caches.h"
#include "launcher/requests/ledger.h"
#include "store/store.h"

namespace nodepool::launcher {

// How often the things happen that no event announces. Not part of the public
// configuration (launcher.md 2); tests shorten them.
struct Intervals {
  Duration cleanup = std::chrono::seconds(60);
  Duration lost_request_grace = std::chrono::seconds(2);  // a cache may lag behind a lock
  Duration delete_timeout = std::chrono::seconds(600);
  Duration delete_retry = std::chrono::seconds(5);
  Duration delete_retry_max = std::chrono::seconds(60);
  Duration make_room_holdoff = std::chrono::minutes(5);
  Duration yield_after = std::chrono::minutes(2);
  Duration refusal_memory = std::chrono::minutes(5);  // longer than a request takes to make way
  Duration reuse_retry = std::chrono::minutes(1);     // of a free node that could not be had
  Duration init_node_age = std::chrono::minutes(5);   // also of one without a provider
  Duration min_ready_holdoff = std::chrono::seconds(60);
  Duration min_ready_pause = std::chrono::seconds(5);  // the least hold-off, when capacity has changed
  Duration provider_start_timeout = std::chrono::seconds(60);
  Duration provider_probe = std::chrono::seconds(10);  // of a driver that failed to answer (D-26)
  Duration leak_cleanup_timeout = std::chrono::seconds(600);
  Duration provider_retry = std::chrono::seconds(1);
  Duration provider_retry_max = std::chrono::seconds(60);
};

// What a launcher leaves to others that serve the same providers (operations.md 13.1).
struct Duties {
  // Otherwise requests get nodes that are ready already, or wait, and none are kept in store.
  bool launches = true;
  // Otherwise no node is deleted or marked for it, nothing is cleaned up, no publisher of job
  // events is heard.
  bool deletes = true;
};

// What the launcher's parts share. Everything outlives them.
struct Context {
  // In force now; replaced as a whole. To be looked at anew after each await.
  std::shared_ptr<const driver::LoadedConfig> config;
  Loop& loop;
  Random& random;
  BlockingPool& blocking_pool;
  metrics::Metrics& metrics;
  store::Store& store;
  Ledger& ledger;
  Caches& caches;
  // Of these caches:
  store::NodeCache& nodes;
  store::RequestCache& requests;
  store::RequestLockCache& request_locks;
  store::ImageCache& images;
  store::JobCache& jobs;
  store::ComponentRegistry& registry;
  Intervals intervals;
  Duties duties;
};

}  // namespace nodepool::launcher
