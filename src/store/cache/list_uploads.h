#pragma once

#include <vector>

#include "store/store.h"

namespace nodepool::store {

// The uploads of all images to all providers, read from ZooKeeper; those that cannot be parsed are
// left out.
Task<std::vector<StoredUpload>> ListUploads(Store& store);

}  // namespace nodepool::store
