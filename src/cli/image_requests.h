#pragma once

#include <optional>

#include "cli/command.h"

namespace nodepool::cli {

// What builders are asked to do about an image (operations.md 5.6, 13.8; D-70). Builders
// act without being waited for; with `wait` the command ends when they have done it, and
// shows their progress meanwhile.

// `nodepool image-build IMAGE`: a new build.
Task<int> RequestBuild(Context& context, ImageName image, bool wait);

// `nodepool image-upload [PROVIDER] IMAGE`: the newest ready build anew in a provider, or
// in all that list the image. An upload that is there is marked for deletion, after which
// a builder makes the next one.
Task<int> RequestUpload(Context& context, std::optional<ProviderName> provider, ImageName image, bool wait);

// `nodepool image-update PROVIDER IMAGE`: a new build, and its upload to these providers.
Task<int> RequestUpdate(Context& context, std::optional<ProviderName> provider, ImageName image, bool wait);

}  // namespace nodepool::cli
