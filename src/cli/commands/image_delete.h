#pragma once

#include <string>

#include "cli/command.h"

namespace nodepool::cli {

// Marks builds and uploads for deletion; a builder does the rest (operations.md 5.6).
// `name` is <image>-<build id>.
Task<int> DibImageDelete(Context& context, std::string name);
Task<int> ImageDelete(Context& context, store::UploadKey upload, bool is_forced);

// The same for an upload that is meant by its number, with or without leading zeros, or by the
// image's id in the cloud (operations.md 13.8). Of several, none is deleted. Forced, the record
// goes at once; what the cloud has is then deleted as a leak.
Task<int> ImageDeleteById(Context& context, std::string id, bool is_forced);

// The upload will be deleted by a builder.
Task<> MarkForDeletion(Context& context, store::StoredUpload upload);

}  // namespace nodepool::cli
