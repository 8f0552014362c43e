#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>

#include "async/event.h"
#include "async/loop.h"
#include "base/clock.h"

namespace nodepool::driver::cloud::api {

// The part of the configured rate at which a service can be called: it halves when the service shows that it
// is overloaded, and grows by 2 % of the configured rate each second, up to all of it. Evidence from calls
// that were sent before the last change counts once. Pure: times are the caller's.
class RateShare {
 public:
  // `least`: refusals make it no smaller; from more than 0 to 1.
  RateShare(double least, SteadyTime now) : least_(least), changed_at_(now - Duration(1)) {}

  // The service refused a call because there were too many.
  void Refused(SteadyTime sent, SteadyTime now) { Halve(least_, sent, now); }

  // The connection failed or broke, or the time was up. Not below an eighth: a lower rate does not mend a
  // network, and what waits shall go on soon after.
  void Unanswered(SteadyTime sent, SteadyTime now);

  // There was an answer. True: the third in a row that took more than four times as long as answers of this
  // call usually do, and a second longer, which halves the share as well.
  bool Answered(const std::string& call, SteadyTime sent, SteadyTime now);

  double At(SteadyTime now) const;

 private:
  // How long answers of a call take: about the median.
  struct Usual {
    double seconds = 0;
    int answers = 0;
  };

  void Halve(double least, SteadyTime sent, SteadyTime now);
  bool IsSlow(const std::string& call, double seconds);

  double least_;
  double share_ = 1;  // at the last change
  SteadyTime changed_at_;
  std::map<std::string, Usual> usual_;  // by call
  int slow_in_a_row_ = 0;
};

// A token bucket: lets `burst` calls pass at once, then one per `interval`. The bucket is full at first and
// is refilled while there are no calls.
//
// The rate adapts to what the service bears.
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
