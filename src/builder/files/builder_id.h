#pragma once

#include <string>

#include "base/random.h"

namespace nodepool::builder {

// The content of builder_id.txt in the directory, made at the first start (builder.md
// 2.2). Throws kInvalid when the directory is missing or cannot be written.
std::string ReadBuilderId(const std::string& images_dir, Random& random);

}  // namespace nodepool::builder
