#pragma once

#include "cli/command.h"

namespace nodepool::cli {

// `nodepool dib-image-list`, `image-list` and `image-status` (operations.md 5.4). Records
// that cannot be read are reported in the log and left out. Nothing is written.
Task<int> DibImageList(Context& context, Output output);
Task<int> ImageList(Context& context, Output output);
Task<int> ImageStatus(Context& context, Output output);

}  // namespace nodepool::cli
