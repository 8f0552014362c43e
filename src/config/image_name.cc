#include "config/image_name.h"

#include "base/utf8.h"

namespace nodepool::config {
namespace {

bool IsControl(char32_t code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

}  // namespace

std::optional<std::string_view> ImageNameFault(const ImageName& name) {
  const std::string& text = name.value;
  if (text.empty()) return "is empty";
  if (text == "." || text == "..") return "is that of a directory";
  if (text.starts_with('-')) return "begins with '-'";
  if (text.find('/') != std::string::npos) return "contains '/'";
  for (std::string_view rest = text; !rest.empty();) {
    Utf8Character character = FirstCharacter(rest);
    if (IsControl(character.code)) return "contains a control character";
    rest.remove_prefix(character.length);
  }
  return std::nullopt;
}

}  // namespace nodepool::config
