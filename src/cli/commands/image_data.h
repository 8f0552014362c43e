#pragma once

#include <string>

#include "cli/command.h"

namespace nodepool::cli {

// `nodepool export-image-data FILE` and `import-image-data FILE` (operations.md 5.8): the
// records of images as a JSON object, path to text. What was written is counted in the log.
Task<int> ExportImageData(Context& context, std::string path);
// Error(kConflict), unless `is_forced`: a launcher or builder is registered; nothing was written.
Task<int> ImportImageData(Context& context, std::string path, bool is_forced);

}  // namespace nodepool::cli
