#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

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

}  // namespace nodepool
