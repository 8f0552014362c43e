#include "base/small_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/text.h"

namespace nodepool {

std::string ReadSmallFile(const std::string& path, std::size_t limit) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(limit, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file && !file.eof())
    throw Error(Verdict::kInvalid, fmt::format("{} cannot be read: {}", path, std::strerror(errno)));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  if (text.empty()) throw Error(Verdict::kInvalid, path + " is empty");
  if (text.size() == limit) throw Error(Verdict::kInvalid, path + " is too large");
  return text;
}

std::string ReadTextFile(const std::string& path) {
  constexpr std::size_t kLimit = 256 * 1024;
  std::string text(Trim(ReadSmallFile(path, kLimit)));
  if (text.empty()) throw Error(Verdict::kInvalid, path + " is empty");
  return text;
}

}  // namespace nodepool
