#pragma once

#include <limits>
#include <string>

#include "model/resources.h"

namespace nodepool::driver {

// The limit of what has none.
inline constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// Amounts or limits of resources (drivers.md 2.1). `cores`, `instances` and `ram`
// (MiB) are always present; others only if given. Arithmetic treats an absent
// resource as `absent`: 0 for amounts, kUnlimited for limits.
class QuotaInformation {
 public:
  // All zero.
  QuotaInformation();
  // An amount used or needed; absent resources count as 0.
  static QuotaInformation Amount(Resources resources);
  // A limit; absent resources are unlimited.
  static QuotaInformation Limit(Resources resources);
  // The need of a machine of unknown size: one instance.
  static QuotaInformation OneInstance();

  void Add(const QuotaInformation& other);
  void Subtract(const QuotaInformation& other);
  // No resource below zero. Infinity minus infinity counts as fitting.
  bool NonNegative() const;

  const Resources& resources() const { return resources_; }
  double Get(const std::string& resource) const;

 private:
  QuotaInformation(Resources resources, double absent);

  Resources resources_;
  double absent_ = 0;
};

}  // namespace nodepool::driver
