#pragma once

#include <string>

#include "base/random.h"

namespace nodepool::builder {

// The content of builder_id.txt in the directory, which is created at the first start (builder.md 2.2).
// Creates the directory if it is missing. Throws kInvalid if it cannot be created or written.
std::string ReadBuilderId(const std::string& images_dir, Random& random);

}  // namespace nodepool::builder
