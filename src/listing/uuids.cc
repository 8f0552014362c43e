#include "listing/uuids.h"

#include <algorithm>
#include <cctype>

namespace nodepool::listing {
namespace {

constexpr std::string_view kDashed = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
constexpr std::string_view kPlain = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
constexpr std::size_t kShown = 8;

bool IsAlphanumeric(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool HasForm(std::string_view text, std::string_view form) {
  return std::ranges::equal(text, form, [](char c, char expected) {
    return expected == 'x' ? std::isxdigit(static_cast<unsigned char>(c)) != 0 : c == expected;
  });
}

// The length of the UUID at the beginning of the text; 0 if there is none.
std::size_t UuidLength(std::string_view text) {
  for (std::string_view form : {kDashed, kPlain}) {
    std::size_t length = form.size();
    bool is_whole = text.size() <= length || !IsAlphanumeric(text[length]);
    if (is_whole && HasForm(text.substr(0, length), form)) return length;
  }
  return 0;
}

}  // namespace

std::string ShortenUuids(std::string_view text) {
  std::string shortened;
  bool is_within_word = false;
  while (!text.empty()) {
    std::size_t length = is_within_word ? 0 : UuidLength(text);
    shortened += text.substr(0, length == 0 ? 1 : kShown);
    if (length != 0) shortened += "\u2026";
    is_within_word = IsAlphanumeric(text.front());
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return shortened;
}

}  // namespace nodepool::listing
