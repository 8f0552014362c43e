#include "drivers/aws/api/content.h"

#include <charconv>

#include "base/digest.h"

namespace nodepool::drivers::aws {

Content MakeContent(std::string bytes) {
  std::string sha256 = Sha256Hex(bytes);
  return {std::move(bytes), std::move(sha256)};
}

std::string BytesOfHex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    unsigned byte = 0;
    std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

}  // namespace nodepool::drivers::aws
