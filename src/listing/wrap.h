#pragma once

#include <string>
#include <string_view>

namespace nodepool::listing {

// A text of one line, broken at blanks into lines of at most `width` terminal columns; those after the first
// one begin with `indent` blanks. A word that is wider is cut.
std::string Wrap(std::string_view text, std::size_t width, std::size_t indent);

}  // namespace nodepool::listing
