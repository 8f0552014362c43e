#pragma once

#include <string>
#include <string_view>

namespace nodepool::listing {

inline constexpr std::string_view kCutMark = "\u2026";  // one column wide

// Terminal columns that a text of one line takes: wide characters two, combining
// ones none. Bytes that are not UTF-8 count one each.
std::size_t DisplayWidth(std::string_view text);

// The text of one line; if it takes more than `width` (at least 1) columns, as much of its beginning as fits,
// followed by kCutMark.
std::string CutToWidth(std::string_view text, std::size_t width);

}  // namespace nodepool::listing
