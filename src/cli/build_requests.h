#pragma once

#include "cli/command.h"

namespace nodepool::cli {

// `nodepool image-build IMAGE`: asks the builders for a build. With `wait`, ends when a
// builder has made one; a failure is told, and waited on, since it is tried again.
Task<int> RequestBuild(Context& context, ImageName image, bool wait);

}  // namespace nodepool::cli
