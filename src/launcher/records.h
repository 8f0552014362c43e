#pragma once

#include "base/error.h"
#include "store/cache/component_registry.h"
#include "store/cache/image_cache.h"
#include "store/cache/job_cache.h"
#include "store/cache/lease_cache.h"
#include "store/cache/node_cache.h"
#include "store/cache/pause_cache.h"
#include "store/cache/request_cache.h"

namespace nodepool::launcher {

// The cluster's records as a launcher sees them, read-only. The launcher outlives this.
struct Records {
  const store::NodeCache& nodes;
  const store::RequestCache& requests;
  const store::ImageCache& images;
  const store::ComponentRegistry& components;
  const store::JobCache& jobs;
  const store::LeaseCache& leases;
  const store::PauseCache& pauses;

  static constexpr const char* kNotComplete = "The records are not read yet, or ZooKeeper is away.";

  // Whether all records are known; false while ZooKeeper is away.
  bool is_complete() const {
    return nodes.synced() && requests.synced() && images.synced() && components.synced() && jobs.synced() &&
           leases.synced() && pauses.synced();
  }
  // Throws Error(kRetry) unless they are.
  void RequireComplete() const {
    if (!is_complete()) throw Error(Verdict::kRetry, kNotComplete);
  }
};

}  // namespace nodepool::launcher
