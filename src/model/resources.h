#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace nodepool {

// Amounts by resource name, as written in a node's `resources`. The names are wire format; a
// driver may add others. In an amount an absent resource is 0, in a limit it is unlimited;
// a limit that is infinite is unlimited, too.
using Resources = std::map<std::string, double>;

namespace resource {

inline constexpr const char* kCores = "cores";
inline constexpr const char* kInstances = "instances";
inline constexpr const char* kRam = "ram";  // MiB
inline constexpr const char* kVolumes = "volumes";
inline constexpr const char* kVolumeGb = "volume-gb";

}  // namespace resource

// Arithmetic on resources (launcher.md 19.1). Amounts are rounded to whole millionths, so that
// adding and subtracting again leaves nothing: three times 0.1 fits exactly into 0.3.

// With a negative `more` the difference. Unlimited minus unlimited is unlimited.
double ExactSum(double amount, double more);

void Add(Resources& amount, const Resources& more, int times = 1);
void Subtract(Resources& amount, const Resources& less);

// The missing amounts by resource, all positive, when `need` is added to `used` under `limit`;
// empty when it fits.
Resources Shortage(const Resources& limit, const Resources& used, const Resources& need);

inline bool Fits(const Resources& limit, const Resources& used, const Resources& need) {
  return Shortage(limit, used, need).empty();
}

// A sum whose amounts are added and later subtracted: subtracting what was added restores it
// exactly, however large the amounts are.
class ResourceSum {
 public:
  void Add(const Resources& amount);
  void Subtract(const Resources& amount);
  // Without the resources whose sum is zero.
  const Resources& total() const { return total_; }

 private:
  void Change(const std::string& name, std::uint64_t millionths);

  // Modulo 2^64, so that absurd records can neither overflow nor leave a residue.
  std::map<std::string, std::uint64_t> millionths_;
  Resources total_;
};

}  // namespace nodepool
