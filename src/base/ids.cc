#include "base/ids.h"

#include <fmt/format.h>

namespace nodepool {

std::uint64_t Random::Below(std::uint64_t bound) {
  // Rejects the last, incomplete run of values so that every result is equally likely.
  std::uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  std::uint64_t value = Next();
  while (value >= limit) value = Next();
  return value % bound;
}

double Random::Between(double low, double high) {
  double unit = static_cast<double>(Next() >> 11) * 0x1.0p-53;
  return low + unit * (high - low);
}

std::string Random::UuidHex() {
  std::uint64_t high = (Next() & ~0xf000ULL) | 0x4000ULL;
  std::uint64_t low = (Next() & ~(3ULL << 62)) | (2ULL << 62);
  return fmt::format("{:016x}{:016x}", high, low);
}

std::string Random::Uuid() {
  std::string hex = UuidHex();
  for (std::size_t at : {20, 16, 12, 8}) hex.insert(at, 1, '-');
  return hex;
}

SystemRandom::SystemRandom() {
  std::random_device device;
  std::seed_seq seed{device(), device(), device(), device()};
  engine_.seed(seed);
}

}  // namespace nodepool
