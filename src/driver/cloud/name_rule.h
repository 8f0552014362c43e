#pragma once

#include <cstddef>
#include <string_view>

namespace nodepool::driver::cloud {

// Which texts a cloud takes as names of something: letters, digits and some other characters, so many.
struct NameRule {
  std::string_view marks;  // beside letters and digits
  std::size_t least = 1;   // characters
  std::size_t most = 63;
  bool begins_with_letter = false;
  bool may_end_with_mark = true;
  bool may_have_capitals = false;

  bool Permits(std::string_view text) const;
};

// Names of hosts, of which many clouds make those of machines and images (RFC 1035): small letters, digits
// and dashes, first a letter, last no dash.
inline constexpr NameRule kHostNameRule{.marks = "-", .begins_with_letter = true, .may_end_with_mark = false};

}  // namespace nodepool::driver::cloud
