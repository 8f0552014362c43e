#pragma once

#include <deque>
#include <optional>
#include <string>

#include "async/event.h"
#include "async/loop.h"
#include "driver/cloud/api/rate_share.h"

namespace nodepool::driver::cloud::api {

// A token bucket: lets `burst` calls pass at once, then one per `interval`. The bucket is full at first and
// is refilled while there are no calls.
//
// The rate adapts to what the service bears (rate_share.h).
class RateLimiter {
 public:
  struct Settings {
    Duration interval{0};  // 0: unlimited, until the service refuses a call
    int burst = 1;
  };
  // None: unlimited, as with 0.
  static std::optional<Settings> PerSecond(double calls);

  // Callers of the second kind wait until none of the first waits, but get at least each fourth turn.
  enum class Order { kFirst, kLater };

  // The loop outlives the limiter, and the limiter all waiting callers.
  RateLimiter(Loop& loop, Settings settings);

  // Ends when the next call may begin; first come, first served within each order.
  Task<> WaitForTurn(Order order = Order::kFirst);

  // What the service shows of its load; calls as of RateShare.
  void Refused(SteadyTime sent) { share_.Refused(sent, loop_.SteadyNow()); }
  void Unanswered(SteadyTime sent) { share_.Unanswered(sent, loop_.SteadyNow()); }
  bool Answered(const std::string& call, SteadyTime sent) {
    return share_.Answered(call, sent, loop_.SteadyNow());
  }

  // The current part of the configured rate, from more than 0 to 1; of an unlimited one, 1 means unlimited.
  double Share() const { return share_.At(loop_.SteadyNow()); }

 private:
  struct Waiter {
    Event is_next{"its turn to call a service"};
  };

  bool IsUnlimited() const;
  Duration Interval() const;
  // When the next call may begin.
  SteadyTime NextTurn() const;
  bool IsNext(const Waiter& waiter) const;
  void Leave(Order order, const Waiter& waiter);
  void WakeNext();

  Loop& loop_;
  Settings settings_;
  RateShare share_;
  SteadyTime full_at_{};  // when the bucket will be full
  std::deque<Waiter*> first_;
  std::deque<Waiter*> later_;
  int first_in_a_row_ = 0;  // turns while one of the others waited
};

}  // namespace nodepool::driver::cloud::api
