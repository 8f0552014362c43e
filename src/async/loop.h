#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "async/task.h"
#include "async/task_registry.h"
#include "base/clock.h"

namespace nodepool {

// A thread's loop, and all state that lives on it: nothing else touches that, so it needs no locks.
// A program has one; the embedded ZooKeeper server has its own (loop_thread.h).
class Loop {
 public:
  // Runs on the system's clocks.
  Loop();
  // Runs on `clock`, which must outlive the loop; under a ManualClock nothing waits for real time.
  explicit Loop(Clock& clock);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  boost::asio::io_context& context() { return context_; }
  boost::asio::any_io_executor executor() { return context_.get_executor(); }
  Clock& clock() { return *clock_; }
  TaskRegistry& tasks() { return tasks_; }

  WallTime Now() const { return clock_->Now(); }
  SteadyTime SteadyNow() const { return clock_->SteadyNow(); }

  // Ends at `when`, or throws kCancelled at once when the task is cancelled.
  Task<> SleepUntil(SteadyTime when);
  Task<> SleepFor(Duration duration);
  // Ends when everything else that can run now has had its turn.
  Task<> GiveWay();
  // As SleepUntil, for a wait whose note says something else (await_note.h).
  Task<> Elapse(SteadyTime when);

  // Runs until Stop() or until nothing is left to do.
  void Run();
  // Runs all handlers that can run without time passing; returns their number.
  std::size_t RunReady();
  void Stop();

 private:
  boost::asio::io_context context_;
  std::unique_ptr<Clock> own_clock_;
  Clock* clock_;
  TaskRegistry tasks_;
};

// Runs `task` on a loop of its own, or on `loop`, until it is done; returns its
// result or throws its error. For main functions and tests.
template <class T>
T RunToEnd(Loop& loop, Task<T> task);

}  // namespace nodepool

#include "async/run_to_end.h"
