#pragma once

#include <cstddef>
#include <string>

namespace nodepool {

// The content of a file with a token, a key or settings. Blocks for the time of reading. Error(kInvalid),
// which names the file: it cannot be read, is empty, or has `limit` bytes or more.
std::string ReadSmallFile(const std::string& path, std::size_t limit = 4 << 20);

// The same without the blanks at its ends, for a file with one text. Error(kInvalid): it has nothing else.
std::string ReadTextFile(const std::string& path);

}  // namespace nodepool
