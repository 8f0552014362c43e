#pragma once

#include <string>

#include "cli/command.h"

namespace nodepool::cli {

// `nodepool export-image-data FILE` and `import-image-data FILE` (operations.md 5.8): the
// records of images as a JSON object, path to text. The daemons rest meanwhile.
Task<int> ExportImageData(Context& context, std::string path);
Task<int> ImportImageData(Context& context, std::string path);

}  // namespace nodepool::cli
