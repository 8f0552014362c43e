#include "zk/tree/path.h"

#include <algorithm>

#include "base/text.h"

namespace nodepool::zk {
namespace {

bool IsRelative(std::string_view component) { return component == "." || component == ".."; }

bool HasOnlyProperComponents(std::string_view path) {
  std::size_t begin = 1;
  while (begin <= path.size()) {
    std::size_t end = std::min(path.find('/', begin), path.size());
    std::string_view component = path.substr(begin, end - begin);
    if (component.empty() || IsRelative(component)) return false;
    begin = end + 1;
  }
  return true;
}

// ZooKeeper checks UTF-16 units: a character beyond U+FFFF is a pair of
// surrogates there and falls into the excluded range too. Requires valid UTF-8.
bool HasOnlyProperCharacters(std::string_view path) {
  for (std::size_t i = 0; i < path.size(); ++i) {
    auto byte = [&](std::size_t offset) { return static_cast<unsigned char>(path[i + offset]); };
    unsigned char lead = byte(0);
    if (lead < 0x20 || lead == 0x7F || lead >= 0xF0) return false;
    if (lead == 0xC2 && byte(1) <= 0x9F) return false;
    if (lead < 0xEE) continue;  // continuation bytes and all below U+E000
    unsigned character = (lead & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
    bool is_private_use = character >= 0xE000 && character <= 0xF8FF;
    if (is_private_use || character >= 0xFFF0) return false;
  }
  return true;
}

}  // namespace

bool IsValidPath(std::string_view path) {
  if (path.empty() || path.front() != '/') return false;
  if (path.size() == 1) return true;
  return IsValidUtf8(path) && HasOnlyProperComponents(path) && HasOnlyProperCharacters(path);
}

}  // namespace nodepool::zk
