#pragma once

#include <optional>

#include "driver/cloud/api/rate_limiter.h"

namespace nodepool::drivers::aws {

// The distance between calls; none: unlimited, as with a rate of 0.
inline std::optional<driver::cloud::api::RateLimiter::Settings> RateOf(double per_second) {
  if (per_second <= 0) return std::nullopt;
  std::chrono::duration<double> interval(1 / per_second);
  return driver::cloud::api::RateLimiter::Settings{std::chrono::duration_cast<Duration>(interval)};
}

}  // namespace nodepool::drivers::aws
