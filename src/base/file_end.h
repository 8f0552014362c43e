#pragma once

#include <cstddef>
#include <string>

namespace nodepool {

// At most the last `size` bytes of a regular file, of a longer one beginning with a whole line. Blocks.
// Throws Error(kFail) with the path where it cannot be read; symbolic links and what is no regular file are
// refused.
std::string ReadFileEnd(const std::string& path, std::size_t size);

}  // namespace nodepool
