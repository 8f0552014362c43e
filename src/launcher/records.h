#pragma once

#include "store/cache/component_registry.h"
#include "store/cache/image_cache.h"
#include "store/cache/node_cache.h"
#include "store/cache/request_cache.h"

namespace nodepool::launcher {

// The records of the cluster as a launcher sees them, for those who only look. Not to be
// kept beyond the launcher.
struct Records {
  const store::NodeCache& nodes;
  const store::RequestCache& requests;
  const store::ImageCache& images;
  const store::ComponentRegistry& components;

  // Whether all of them are known; not while ZooKeeper is away.
  bool is_complete() const {
    return nodes.synced() && requests.synced() && images.synced() && components.synced();
  }
};

}  // namespace nodepool::launcher
