#pragma once

#include <deque>

#include "async/event.h"
#include "async/loop.h"

namespace nodepool::driver::cloud::api {

// A token bucket: lets `burst` calls pass at once, then one per `interval`. The bucket is full at first and
// is refilled while there are no calls.
//
// The rate adapts to what the service accepts: SlowDown() halves it, and it grows again by itself, by a fixed
// part of the configured rate each second.
class RateLimiter {
 public:
  struct Settings {
    Duration interval{0};  // 0: unlimited, until the service refuses a call
    int burst = 1;
  };
  // Callers of the second kind wait until none of the first waits, but get at least each fourth turn.
  enum class Order { kFirst, kLater };

  // The loop outlives the limiter, and the limiter all waiting callers.
  RateLimiter(Loop& loop, Settings settings);

  // Ends when the next call may begin; first come, first served within each order.
  Task<> WaitForTurn(Order order = Order::kFirst);

  // The service refused a call that was sent at `sent` because there were too many. Refusals of calls that
  // were sent before the last change count once.
  void SlowDown(SteadyTime sent);

  // The current part of the configured rate, from more than 0 to 1; of an unlimited one, 1 means unlimited.
  double Share() const;

 private:
  struct Waiter {
    Event is_next{"its turn to call a service"};
  };

  Duration Usual() const;
  bool IsUnlimited() const;
  Duration Interval() const;
  // When the next call may begin.
  SteadyTime NextTurn() const;
  bool IsNext(const Waiter& waiter) const;
  void Leave(Order order, const Waiter& waiter);
  void WakeNext();

  Loop& loop_;
  Settings settings_;
  double share_ = 1;        // after the last refusal
  SteadyTime slowed_at_{};  // when it came
  SteadyTime full_at_{};    // when the bucket will be full
  std::deque<Waiter*> first_;
  std::deque<Waiter*> later_;
  int first_in_a_row_ = 0;  // turns while one of the others waited
};

}  // namespace nodepool::driver::cloud::api
