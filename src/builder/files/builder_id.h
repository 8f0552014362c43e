#pragma once

#include <string>

#include "base/random.h"

namespace nodepool::builder {

// The content of builder_id.txt in the directory, which is created at the first start (builder.md 2.2).
// Throws kInvalid if the directory is missing or cannot be written.
std::string ReadBuilderId(const std::string& images_dir, Random& random);

}  // namespace nodepool::builder
