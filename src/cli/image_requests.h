#pragma once

#include <optional>

#include "cli/command.h"

namespace nodepool::cli {

// Requests to builders about an image (operations.md 5.6, 13.8; D-70). Builders work in the background; with
// `wait` the command ends when they have finished, and shows their progress meanwhile.

// `nodepool image-build IMAGE`: requests a new build.
Task<int> RequestBuild(Context& context, ImageName image, bool wait);

// `nodepool image-upload [PROVIDER] IMAGE`: repeats the upload of the newest ready build to a provider, or to
// all that list the image. An existing upload is marked for deletion, after which a builder makes the next
// one.
Task<int> RequestUpload(Context& context, std::optional<ProviderName> provider, ImageName image, bool wait);

// `nodepool image-upload-retry PROVIDER IMAGE`: has a build that is missing in the provider uploaded at once,
// also if builders wait after a failure.
Task<int> RetryUpload(Context& context, ProviderName provider, ImageName image);

// `nodepool image-update PROVIDER IMAGE`: requests a new build, and its upload to these providers.
Task<int> RequestUpdate(Context& context, std::optional<ProviderName> provider, ImageName image, bool wait);

}  // namespace nodepool::cli
