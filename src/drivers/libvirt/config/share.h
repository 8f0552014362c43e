#pragma once

#include <optional>
#include <string_view>

namespace nodepool::drivers::libvirt {

// A part of what a host has: an amount, or a percentage of the whole, which may exceed 100.
struct Share {
  double value = 0;
  bool is_percentage = false;

  double Of(double whole) const { return is_percentage ? whole * value / 100 : value; }
};

// "8" or "150%"; nullopt: anything else.
std::optional<Share> ParseShare(std::string_view text);

}  // namespace nodepool::drivers::libvirt
