#pragma once

#include <functional>

#include "async/loop.h"

namespace nodepool::sim {

// A loop on a virtual clock, run handler by handler: between two handlers the simulation can be inspected and
// processes can be killed.
class Stepper {
 public:
  Loop& loop() { return loop_; }
  ManualClock& clock() { return clock_; }
  SteadyTime now() const { return clock_.SteadyNow(); }
  // Handlers run so far.
  std::uint64_t steps() const { return steps_; }

  // Called after every handler.
  void AfterEach(std::function<void()> callback) { after_each_ = std::move(callback); }

  // Runs handlers and lets time pass until `is_reached`, which is checked before each handler, for at most
  // `limit`. Returns whether it was reached.
  template <class Predicate>
  bool RunUntil(Predicate is_reached, Duration limit) {
    SteadyTime end = now() + limit;
    while (!is_reached()) {
      if (!RunOne() && !PassTime(end)) return is_reached();
    }
    return true;
  }
  // Runs all handlers that are ready, without letting time pass.
  void RunReady() {
    while (RunOne()) {
    }
  }

 private:
  bool RunOne();
  // Advances to the next timer, or to `end`; false at `end`.
  bool PassTime(SteadyTime end);

  ManualClock clock_;
  Loop loop_{clock_};
  std::function<void()> after_each_;
  std::uint64_t steps_ = 0;
};

}  // namespace nodepool::sim
