#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace nodepool::drivers::libvirt {

// The text with every byte that could be taken for a separator, or that a file name should not have, as %XX.
std::string Escaped(std::string_view text);

// nullopt: a % is not followed by two lower-case hex digits.
std::optional<std::string> Unescaped(std::string_view text);

}  // namespace nodepool::drivers::libvirt
