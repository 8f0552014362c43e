#pragma once

#include <string>

#include "cli/command.h"

namespace nodepool::cli {

// Marks builds and uploads for deletion; a builder does the rest (operations.md 5.6).
// `name` is <image>-<build id>.
Task<int> DibImageDelete(Context& context, std::string name);
Task<int> ImageDelete(Context& context, store::UploadKey upload);

// The upload will be deleted by a builder.
Task<> MarkForDeletion(Context& context, store::StoredUpload upload);

// Whether builds of the image wait until it is unpaused.
Task<int> PauseImage(Context& context, ImageName image);
Task<int> UnpauseImage(Context& context, ImageName image);

}  // namespace nodepool::cli
