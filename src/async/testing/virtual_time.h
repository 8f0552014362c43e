#pragma once

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <variant>

#include "async/loop.h"
#include "async/testing/run_ready.h"
#include "base/clock.h"
#include "base/testing/manual_clock.h"

namespace nodepool::testing {

// A loop on a clock that moves only when the test says so. Hours pass in no time, and the same test
// always runs the same way.
class VirtualTime {
 public:
  ManualClock& clock() { return clock_; }
  Loop& loop() { return loop_; }

  // Runs everything that is due within `duration` from now, timer by timer.
  void Advance(Duration duration) {
    SteadyTime end = clock_.SteadyNow() + duration;
    RunReady(loop_);
    while (clock_.has_timers() && clock_.next_timer() <= end) Step();
    PassTime(end);
  }

  // Until the next timer is due; none: nothing will happen any more.
  std::optional<Duration> Idle() const {
    if (!clock_.has_timers()) return std::nullopt;
    return std::max(Duration(0), clock_.next_timer() - clock_.SteadyNow());
  }

  // Runs until `is_reached` returns true, at most for `limit` of virtual time; returns whether it
  // was reached. Time does not advance once it is. A false result without timers left means that
  // nothing will happen any more.
  template <class Predicate>
  bool RunUntil(Predicate is_reached, Duration limit = std::chrono::minutes(10)) {
    SteadyTime end = clock_.SteadyNow() + limit;
    RunReady(loop_);
    while (!is_reached()) {
      if (!clock_.has_timers() || clock_.next_timer() > end) return false;
      Step();
    }
    return true;
  }

  // Runs `task` to its end, advancing time as needed; returns its result or throws its error.
  // Throws std::logic_error when it did not end within `limit`.
  template <class T>
  T Run(Task<T> task, Duration limit = std::chrono::minutes(10));

 private:
  void Step() { PassTime(clock_.next_timer()); }
  // Timers end on the loop, as those of a program do: what they begin may run to its end at once.
  void PassTime(SteadyTime until) {
    boost::asio::post(loop_.context(), [this, until] { clock_.AdvanceTo(until); });
    RunReady(loop_);
  }

  ManualClock clock_;
  Loop loop_{clock_};
};

template <class T>
T VirtualTime::Run(Task<T> task, Duration limit) {
  struct End {
    std::exception_ptr error;
    bool is_reached = false;
    std::conditional_t<std::is_void_v<T>, std::monostate, std::optional<T>> result;
  };
  // Shared, since a task that does not end in time may end later.
  auto end = std::make_shared<End>();
  if constexpr (std::is_void_v<T>) {
    boost::asio::co_spawn(loop_.context(), std::move(task), [end](std::exception_ptr error) {
      end->error = error;
      end->is_reached = true;
    });
  } else {
    boost::asio::co_spawn(loop_.context(), std::move(task), [end](std::exception_ptr error, T value) {
      end->error = error;
      if (!error) end->result.emplace(std::move(value));
      end->is_reached = true;
    });
  }
  if (!RunUntil([&] { return end->is_reached; }, limit))
    throw std::logic_error("the task did not end in virtual time");
  if (end->error) std::rethrow_exception(end->error);
  if constexpr (!std::is_void_v<T>) return std::move(*end->result);
}

}  // namespace nodepool::testing
