#pragma once

#include <map>
#include <string>
#include <vector>

#include "store/store.h"

namespace nodepool::store {

// The work of `nodepool export-image-data` and `import-image-data`.

// The data of every pause, build and upload, by path.
Task<std::map<std::string, std::string>> ExportImages(Store& store);

// Writes such data. Later uploads get greater numbers than those in it, the same numbers as after
// an import by another program (coordination.md 14.4). Error(kInvalid): the path of none of these
// records.
Task<> ImportImages(Store& store, std::map<std::string, std::string> records);

// The uploads of all images to all providers, read from ZooKeeper; those that cannot be parsed are
// left out.
Task<std::vector<StoredUpload>> ListUploads(Store& store);

}  // namespace nodepool::store
