#pragma once

#include "store/cache/component_registry.h"
#include "store/cache/image_cache.h"
#include "store/cache/node_cache.h"
#include "store/cache/request_cache.h"
#include "store/store.h"

namespace nodepool::driver {

// The records in ZooKeeper, as the cloud framework and drivers without a cloud of their own
// (static, metastatic) read and write them. An adapter of a cloud needs none of it. Everything
// outlives the provider.
struct RecordsEnvironment {
  store::Store& store;
  store::NodeCache& nodes;
  store::ImageCache& images;
  // Null: the provider makes no requests of its own.
  store::RequestCache* requests = nullptr;
  // Null: nothing is known of other programs.
  const store::ComponentRegistry* components = nullptr;
};

}  // namespace nodepool::driver
