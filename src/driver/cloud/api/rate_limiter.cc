#include "driver/cloud/api/rate_limiter.h"

#include <algorithm>

namespace nodepool::driver::cloud::api {

Task<> RateLimiter::WaitForTurn() {
  SteadyTime now = loop_.SteadyNow();
  full_at_ = std::max(now, full_at_);
  SteadyTime turn = full_at_ - (settings_.burst - 1) * settings_.interval;
  full_at_ += settings_.interval;
  if (turn > now) co_await loop_.SleepUntil(turn);
}

}  // namespace nodepool::driver::cloud::api
