#pragma once

#include <functional>

#include "cli/command.h"
#include "store/cache/cached_records.h"

namespace nodepool::cli {

// Follows the builders' work on an image until `is_done`, and prints it to `context.out`: builds and uploads
// as they begin and end, and the log of a build on this host as it grows. Failures are printed and do not end
// it, since builders retry.
Task<> FollowImage(Context& context, ImageName image, std::function<bool(const store::ImageCache&)> is_done);

}  // namespace nodepool::cli
