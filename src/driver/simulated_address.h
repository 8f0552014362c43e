#pragma once

#include <string_view>

namespace nodepool::driver {

// The addresses of machines that exist only in the memory of a simulated cloud, as the Python implementation
// has them in its records. Nothing can be reached at them.
inline constexpr std::string_view kSimulatedAddress = "fake";
inline constexpr std::string_view kSimulatedIpv6 = "fake_v6";

inline bool IsSimulated(std::string_view address) {
  return address == kSimulatedAddress || address == kSimulatedIpv6;
}

}  // namespace nodepool::driver
