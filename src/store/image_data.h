#pragma once

#include <map>
#include <string>

#include "store/store.h"

// What `nodepool export-image-data` and `import-image-data` do.
namespace nodepool::store {

// The data of every pause, build and upload, by path.
Task<std::map<std::string, std::string>> ExportImages(Store& store);

// Writes such data. Later uploads get greater numbers than those in it, the same that they
// get from the imports of other programs (coordination.md 14.4). Error(kInvalid): a path that is none
// of these.
Task<> ImportImages(Store& store, std::map<std::string, std::string> records);

}  // namespace nodepool::store
