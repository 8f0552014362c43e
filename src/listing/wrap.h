#pragma once

#include <string>
#include <string_view>

namespace nodepool::listing {

// A text of one line, broken at blanks into lines of at most `width` terminal columns; all but the first
// begin with `indent` blanks. A wider word is cut.
std::string Wrap(std::string_view text, std::size_t width, std::size_t indent);

}  // namespace nodepool::listing
