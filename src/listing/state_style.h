#pragma once

#include <string_view>

namespace nodepool::listing {

// The escape sequence with which a terminal shows a state of any kind of record; empty for words that are not
// a state.
std::string_view StyleOf(std::string_view state);

}  // namespace nodepool::listing
