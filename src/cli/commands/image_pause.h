#pragma once

#include "cli/command.h"

namespace nodepool::cli {

// `nodepool image-pause IMAGE` and `image-unpause IMAGE`: pauses or resumes the builds of the image
// (operations.md 5.6).
Task<int> PauseImage(Context& context, ImageName image);
Task<int> UnpauseImage(Context& context, ImageName image);

}  // namespace nodepool::cli
