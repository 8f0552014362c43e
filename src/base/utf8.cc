#include "base/utf8.h"

#include <cstdint>

namespace nodepool {

Utf8Character FirstCharacter(std::string_view bytes) {
  auto lead = static_cast<std::uint8_t>(bytes.front());
  const Utf8Character malformed{lead, 1, true};
  std::size_t length = lead < 0x80         ? 1
                       : lead >> 5 == 0x6  ? 2
                       : lead >> 4 == 0xe  ? 3
                       : lead >> 3 == 0x1e ? 4
                                           : 0;
  if (length == 0 || length > bytes.size()) return malformed;
  char32_t code = length == 1 ? lead : lead & (0x7f >> length);
  for (std::size_t i = 1; i < length; ++i) {
    auto next = static_cast<std::uint8_t>(bytes[i]);
    if (next >> 6 != 0x2) return malformed;
    code = code << 6 | (next & 0x3f);
  }
  bool overlong =
      (length == 2 && code < 0x80) || (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (overlong || surrogate || code > 0x10ffff) return malformed;
  return {code, length, false};
}

}  // namespace nodepool
