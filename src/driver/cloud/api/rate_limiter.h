#pragma once

#include "async/loop.h"

namespace nodepool::driver::cloud::api {

// A token bucket: lets `burst` calls pass at once, then one per `interval`. The bucket is full at first and
// is refilled while there are no calls.
class RateLimiter {
 public:
  struct Settings {
    Duration interval;
    int burst = 1;
  };

  // The loop outlives the limiter, and the limiter all waiting callers.
  RateLimiter(Loop& loop, Settings settings) : loop_(loop), settings_(settings) {}

  // Ends when the next call may begin; first come, first served. A caller that is cancelled while it
  // waits has used its turn.
  Task<> WaitForTurn();

 private:
  Loop& loop_;
  Settings settings_;
  SteadyTime full_at_{};  // when the bucket will be full
};

}  // namespace nodepool::driver::cloud::api
