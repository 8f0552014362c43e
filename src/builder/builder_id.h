#pragma once

#include <string>

#include "base/random.h"

namespace nodepool::builder {

// The content of builder_id.txt in the directory, made at the first start (builder.md
// 2.2). Makes the directory where it is missing. Throws kInvalid when it cannot be made or written.
std::string ReadBuilderId(const std::string& images_dir, Random& random);

}  // namespace nodepool::builder
