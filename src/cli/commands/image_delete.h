#pragma once

#include <string>

#include "cli/command.h"

namespace nodepool::cli {

// Marks builds and uploads for deletion; a builder deletes them (operations.md 5.6). `name` is <image>-<build
// id>.
Task<int> DibImageDelete(Context& context, std::string name);
Task<int> ImageDelete(Context& context, store::UploadKey upload, bool is_forced);

// The same for an upload that is given by its number, with or without leading zeros, or by the image's id in
// the cloud (operations.md 13.8). If several match, none is deleted. If forced, the record is removed at
// once; the image in the cloud is then deleted as a leak.
Task<int> ImageDeleteById(Context& context, std::string id, bool is_forced);

// Marks the upload; a builder deletes it.
Task<> MarkForDeletion(Context& context, store::StoredUpload upload);

}  // namespace nodepool::cli
