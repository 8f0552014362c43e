#pragma once

#include <vector>

#include "store/store.h"

namespace nodepool::store {

// The uploads of all images to all providers, directly read; what cannot be parsed is left out.
Task<std::vector<StoredUpload>> ListUploads(Store& store);

}  // namespace nodepool::store
