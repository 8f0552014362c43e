#pragma once

#include "cli/command.h"

namespace nodepool::cli {

// `nodepool image-pause IMAGE` and `image-unpause IMAGE`: whether builds of the image wait
// until it is unpaused (operations.md 5.6).
Task<int> PauseImage(Context& context, ImageName image);
Task<int> UnpauseImage(Context& context, ImageName image);

}  // namespace nodepool::cli
