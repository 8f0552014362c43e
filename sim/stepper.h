#pragma once

#include <functional>

#include "async/loop.h"

namespace nodepool::sim {

// A loop on a virtual clock, run handler by handler: between any two of them somebody
// may look, or let a process die.
class Stepper {
 public:
  Loop& loop() { return loop_; }
  ManualClock& clock() { return clock_; }
  SteadyTime now() const { return clock_.SteadyNow(); }
  // Handlers run so far.
  std::uint64_t steps() const { return steps_; }

  // Called after every handler.
  void AfterEach(std::function<void()> callback) { after_each_ = std::move(callback); }

  // Runs handlers and lets time pass until `is_reached`, at most for `limit`; asks
  // before each handler. Returns whether it was reached.
  template <class Predicate>
  bool RunUntil(Predicate is_reached, Duration limit) {
    SteadyTime end = now() + limit;
    while (!is_reached()) {
      if (!RunOne() && !PassTime(end)) return is_reached();
    }
    return true;
  }
  // Runs everything that can run without time passing.
  void RunReady() {
    while (RunOne()) {
    }
  }

 private:
  bool RunOne();
  // To the next timer, or to `end`; false at `end`.
  bool PassTime(SteadyTime end);

  ManualClock clock_;
  Loop loop_{clock_};
  std::function<void()> after_each_;
  std::uint64_t steps_ = 0;
};

}  // namespace nodepool::sim
