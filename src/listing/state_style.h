#pragma once

#include <string_view>

namespace nodepool::listing {

// The escape sequence with which a terminal shows a state, of whatever kind of record;
// empty for words that are no state.
std::string_view StyleOf(std::string_view state);

}  // namespace nodepool::listing
