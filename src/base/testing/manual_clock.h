#pragma once

#include <algorithm>
#include <functional>
#include <utility>

#include "base/clock.h"

namespace nodepool::testing {

// Time that moves only when a test says so. Timers due at the same instant run
// in the order they were set.
class ManualClock : public Clock {
 public:
  explicit ManualClock(WallTime start = FromSeconds(1'700'000'000)) : start_(start) {}
  WallTime Now() const override { return start_ + elapsed_; }
  SteadyTime SteadyNow() const override { return SteadyTime(elapsed_); }
  TimerId CallAt(SteadyTime when, std::move_only_function<void()> callback) override {
    return timers_.Add(when, std::move(callback));
  }
  bool CancelTimer(TimerId id) override { return timers_.Remove(id); }

  bool has_timers() const { return !timers_.empty(); }
  // Requires has_timers().
  SteadyTime next_timer() const { return timers_.earliest(); }
  // Moves time to `when` and runs the callbacks due by then. Never moves back.
  void AdvanceTo(SteadyTime when) {
    while (!timers_.empty() && timers_.earliest() <= when) {
      elapsed_ = std::max(elapsed_, timers_.earliest().time_since_epoch());
      timers_.PopEarliest()();
    }
    elapsed_ = std::max(elapsed_, when.time_since_epoch());
  }
  // Shifts only the wall clock, as an administrator or NTP would.
  void ShiftWallClock(Duration by) { start_ += by; }

 private:
  WallTime start_;
  Duration elapsed_{0};
  TimerQueue timers_;
};

}  // namespace nodepool::testing
