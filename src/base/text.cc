#include "base/text.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <sodium/crypto_shorthash.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/crypto.h"

namespace nodepool {

std::size_t HashText(std::string_view text) {
  // Never destroyed: the destructors of other static objects may need it.
  static const std::string& key = *new std::string(SecretBytes(crypto_shorthash_KEYBYTES));
  std::uint64_t hash = 0;
  static_assert(sizeof(hash) == crypto_shorthash_BYTES);
  crypto_shorthash(reinterpret_cast<unsigned char*>(&hash),
                   reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                   reinterpret_cast<const unsigned char*>(key.data()));
  return hash;
}

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

namespace {

// How many letters to insert, remove, replace or swap with their neighbours turn one word into the other.
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last, last, row(b.size() + 1);  // by the number of letters of `b`
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      bool are_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (are_swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

bool IsPrintable(char byte) { return byte >= ' ' && byte < '\x7f'; }

// Whether a terminal or a reader would obey the character instead of seeing it.
bool IsObeyed(char32_t character) {
  bool is_control = character < 0x20 || (character >= 0x7f && character < 0xa0);
  bool breaks_lines = character == 0x2028 || character == 0x2029;
  bool turns_text = character == 0x061c || character == 0x200e || character == 0x200f ||
                    (character >= 0x202a && character <= 0x202e) ||
                    (character >= 0x2066 && character <= 0x2069);
  return is_control || breaks_lines || turns_text;
}

// Appends the characters of `text` that end within its first `limit` bytes.
void AppendVisible(std::string& out, std::string_view text, std::size_t limit, std::string_view kept) {
  for (std::size_t i = 0; i < text.size();) {
    const char* begin = text.data() + i;
    const char* other = std::find_if_not(begin, text.data() + std::min(limit, text.size()), IsPrintable);
    out.append(begin, other);
    i = static_cast<std::size_t>(other - text.data());
    if (i >= std::min(limit, text.size())) return;
    Utf8Character character = FirstCharacter(text.substr(i));
    if (i + character.length > limit) return;
    std::string_view written = text.substr(i, character.length);
    bool is_shown = !character.is_malformed && !IsObeyed(character.code);
    if (is_shown || kept.find(written) != kept.npos) {
      out += written;
    } else {
      auto code = static_cast<std::uint32_t>(character.code);
      out += character.length == 1 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
    }
    i += character.length;
  }
}

}  // namespace

std::optional<std::string> NearestSpelling(std::string_view word,
                                           const std::vector<std::string>& candidates) {
  constexpr std::size_t kMaxWordLength = 64;  // bounds the quadratic comparison
  if (word.size() > kMaxWordLength) return std::nullopt;
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    std::size_t distance = EditDistance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  std::size_t start = 0;
  while (true) {
    std::size_t end = text.find(separator, start);
    parts.emplace_back(text.substr(start, end - start));
    if (end == std::string_view::npos) return parts;
    start = end + 1;
  }
}

std::string_view Trim(std::string_view text, std::string_view blanks) {
  std::size_t start = std::min(text.find_first_not_of(blanks), text.size());
  text.remove_prefix(start);
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

std::string Join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

bool IsValidUtf8(std::string_view bytes) {
  while (!bytes.empty()) {
    Utf8Character character = FirstCharacter(bytes);
    if (character.is_malformed) return false;
    bytes.remove_prefix(character.length);
  }
  return true;
}

std::string Visible(std::string_view text, std::string_view kept) {
  std::string visible;
  visible.reserve(text.size());
  AppendVisible(visible, text, text.size(), kept);
  return visible;
}

std::string Excerpt(std::string_view text, std::size_t limit, std::string_view kept) {
  std::string excerpt;
  AppendVisible(excerpt, text, limit, kept);
  return text.size() > limit ? excerpt + "..." : excerpt;
}

std::string Base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4, '\0');
  // Writes a null after the text, where std::string has one.
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                  reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  return text;
}

std::optional<std::string> FromBase64(std::string_view text) {
  std::size_t padding = text.size() - std::min(text.size(), text.find_last_not_of('=') + 1);
  if (text.size() % 4 != 0 || padding > 2) return std::nullopt;
  std::string bytes(text.size() / 4 * 3, '\0');
  int length =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                      reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (length < 0) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(length) - padding);
  return bytes;
}

std::string Hex(std::string_view bytes) {
  std::string text;
  for (unsigned char byte : bytes) fmt::format_to(std::back_inserter(text), "{:02x}", byte);
  return text;
}

}  // namespace nodepool
