#pragma once

#include <string>

#include "cli/command.h"

namespace nodepool::cli {

// `nodepool export-image-data FILE` and `import-image-data FILE` (operations.md 5.8): the records of images
// as a JSON object, path to text. Logs how many were written.
Task<int> ExportImageData(Context& context, std::string path);
// Unless `is_forced`, throws Error(kConflict) if a launcher or builder is registered; nothing is written
// then.
Task<int> ImportImageData(Context& context, std::string path, bool is_forced);

}  // namespace nodepool::cli
