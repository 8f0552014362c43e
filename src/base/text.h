#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace nodepool {

// SipHash-2-4 of a text, with a key that only this process knows. Nobody outside can choose texts that
// collide, with which a look-up in a hash table would take as long as the table is.
std::size_t HashText(std::string_view text);

struct TextHash {
  using is_transparent = void;
  // Not noexcept: GCC's tables then keep the hash with each entry.
  std::size_t operator()(std::string_view text) const { return HashText(text); }
};

// Hash tables whose keys may come from outside.
template <class Value>
using TextMap = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;
using TextSet = std::unordered_set<std::string, TextHash, std::equal_to<>>;

struct Utf8Character {
  char32_t code;       // of a malformed byte its value
  std::size_t length;  // in bytes
  bool is_malformed;   // one byte that begins no character
};

// The first character of `bytes`, which are not empty.
Utf8Character FirstCharacter(std::string_view bytes);

// The candidate nearest in spelling to `word`, or none when all are too far to be a plausible typo
// (more than a third of the word's letters differ; two that are swapped count as one).
std::optional<std::string> NearestSpelling(std::string_view word, const std::vector<std::string>& candidates);

// `text` split at each `separator`; an empty text gives no part.
std::vector<std::string> Split(std::string_view text, char separator);

// `text` without the `blanks` at its ends.
std::string_view Trim(std::string_view text, std::string_view blanks = " \t\r\n\f\v");

// For ASCII only; other bytes are unchanged.
std::string Lower(std::string_view text);
std::string Upper(std::string_view text);

std::string Join(const std::vector<std::string>& parts, std::string_view separator);

bool IsValidUtf8(std::string_view bytes);

// `text` with what a terminal or a reader would obey instead of seeing it: C0 controls, DEL and bytes that
// are not UTF-8 as \x1b, C1 controls, line separators and controls of the writing direction as \u202e. The
// characters in `kept` stay.
std::string Visible(std::string_view text, std::string_view kept = {});

// The same of at most `limit` bytes, for use in a log line or an error message about input from outside;
// "..." is appended if there are more.
std::string Excerpt(std::string_view text, std::size_t limit = 80, std::string_view kept = {});

std::string Base64(std::string_view bytes);

// The bytes; nullopt when `text` is not base64, padded and without blanks.
std::optional<std::string> FromBase64(std::string_view text);

// Two lower-case digits for each byte.
std::string Hex(std::string_view bytes);

// The entry of `key`, or an empty one.
template <class Map>
const typename Map::mapped_type& FindOrEmpty(const Map& map, const typename Map::key_type& key) {
  static const typename Map::mapped_type empty{};
  auto it = map.find(key);
  return it == map.end() ? empty : it->second;
}

}  // namespace nodepool
