#include "drivers/libvirt/config/share.h"

#include <charconv>

namespace nodepool::drivers::libvirt {

std::optional<Share> ParseShare(std::string_view text) {
  bool is_percentage = text.ends_with('%');
  if (is_percentage) text.remove_suffix(1);
  unsigned amount = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return Share{static_cast<double>(amount), is_percentage};
}

}  // namespace nodepool::drivers::libvirt
