#pragma once

#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <optional>
#include <stdexcept>
#include <utility>

#include "async/loop.h"
#include "base/clock.h"

namespace nodepool::testing {

// A loop on a clock that moves only when the test says so. Hours pass in no time,
// and the same test always runs the same way.
class VirtualTime {
 public:
  ManualClock& clock() { return clock_; }
  Loop& loop() { return loop_; }

  // Runs everything that is due within `duration` from now, timer by timer.
  void Advance(Duration duration) {
    SteadyTime end = clock_.SteadyNow() + duration;
    loop_.RunReady();
    while (clock_.has_timers() && clock_.next_timer() <= end) Step();
    clock_.AdvanceTo(end);
    loop_.RunReady();
  }

  // Runs until `is_reached` tells true, at most for `limit` of virtual time;
  // returns whether it was reached. Time does not move on once it is. A false
  // result without timers left means that nothing is going to happen any more.
  template <class Predicate>
  bool RunUntil(Predicate is_reached, Duration limit = std::chrono::minutes(10)) {
    SteadyTime end = clock_.SteadyNow() + limit;
    loop_.RunReady();
    while (!is_reached()) {
      if (!clock_.has_timers() || clock_.next_timer() > end) return false;
      Step();
    }
    return true;
  }

  // Runs `task` to its end, moving time as it needs; returns its result or throws
  // its error. Throws std::logic_error when it did not end within `limit`.
  template <class T>
  T Run(Task<T> task, Duration limit = std::chrono::minutes(10));

 private:
  void Step() {
    clock_.AdvanceTo(clock_.next_timer());
    loop_.RunReady();
  }

  ManualClock clock_;
  Loop loop_{clock_};
};

template <class T>
T VirtualTime::Run(Task<T> task, Duration limit) {
  std::exception_ptr error;
  bool done = false;
  auto check = [&] {
    if (!RunUntil([&] { return done; }, limit))
      throw std::logic_error("the task did not end in virtual time");
    if (error) std::rethrow_exception(error);
  };
  if constexpr (std::is_void_v<T>) {
    boost::asio::co_spawn(loop_.context(), std::move(task), [&](std::exception_ptr e) {
      error = e;
      done = true;
    });
    check();
  } else {
    std::optional<T> result;
    boost::asio::co_spawn(loop_.context(), std::move(task), [&](std::exception_ptr e, T value) {
      error = e;
      if (!e) result.emplace(std::move(value));
      done = true;
    });
    check();
    return std::move(*result);
  }
}

}  // namespace nodepool::testing
