#pragma once

#include <cstddef>
#include <string_view>

namespace nodepool {

struct Utf8Character {
  char32_t code;       // of a malformed byte its value
  std::size_t length;  // in bytes
  bool is_malformed;   // one byte that begins no character
};

// The first character of `bytes`, which are not empty.
Utf8Character FirstCharacter(std::string_view bytes);

}  // namespace nodepool
