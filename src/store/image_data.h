#pragma once

#include <map>
#include <string>

#include "store/store.h"

// The work of `nodepool export-image-data` and `import-image-data`.
namespace nodepool::store {

// The data of every pause, build and upload, by path.
Task<std::map<std::string, std::string>> ExportImages(Store& store);

// Writes such data. Later uploads get greater numbers than those in it, the same numbers as after
// an import by another program (coordination.md 14.4). Error(kInvalid): the path of none of these
// records.
Task<> ImportImages(Store& store, std::map<std::string, std::string> records);

}  // namespace nodepool::store
