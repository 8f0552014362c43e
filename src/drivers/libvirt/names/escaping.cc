#include "drivers/libvirt/names/escaping.h"

#include <fmt/format.h>

#include <cctype>

namespace nodepool::drivers::libvirt {

namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

bool IsPlain(unsigned char c) { return (c < 0x80 && std::isalnum(c) != 0) || c == '_' || c == '-'; }

}  // namespace

std::string Escaped(std::string_view field) {
  std::string text;
  for (char c : field) {
    if (IsPlain(static_cast<unsigned char>(c))) {
      text += c;
    } else {
      text += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    }
  }
  return text;
}

std::optional<std::string> Unescaped(std::string_view text) {
  std::string field;
  while (!text.empty()) {
    if (text.front() != '%') {
      field += text.front();
      text.remove_prefix(1);
      continue;
    }
    if (text.size() < 3) return std::nullopt;
    std::size_t high = kHexDigits.find(text[1]), low = kHexDigits.find(text[2]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    field += static_cast<char>(high * 16 + low);
    text.remove_prefix(3);
  }
  return field;
}

}  // namespace nodepool::drivers::libvirt
