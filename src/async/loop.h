#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/list_hook.hpp>
#include <exception>
#include <list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>

#include "async/task.h"
#include "base/clock.h"
#include "base/log/logging.h"

namespace nodepool {

// Notes what the task of an executor awaits, while this lives in the awaiting coroutine's frame;
// shown when the tasks are dumped. Costs no allocation:
//
//   auto executor = co_await boost::asio::this_coro::executor;
//   AwaitNote note(executor, "the answer to", path);
//   co_await ...;
class AwaitNote
    : public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  // The texts outlive the note. `until`: when the wait ends at the latest.
  AwaitNote(const boost::asio::any_io_executor& executor, std::string_view what, std::string_view about = {},
            std::optional<SteadyTime> until = {});

  std::string_view what() const { return what_; }
  std::string_view about() const { return about_; }
  std::optional<SteadyTime> until() const { return until_; }

 private:
  std::string_view what_;
  std::string_view about_;
  std::optional<SteadyTime> until_;
};

// One running task, as the stack dump shows it: in this program tasks hang, not threads.
struct TaskInfo {
  std::string name;
  log::Ids ids;
  SteadyTime started;
  // What it awaits, the outer before the inner; empty while it runs and for awaits without a note.
  boost::intrusive::list<AwaitNote, boost::intrusive::constant_time_size<false>> awaits = {};
};

// Every spawned task while it lives, the oldest first.
class TaskRegistry {
 public:
  using Entry = std::list<TaskInfo>::iterator;

  Entry Add(TaskInfo info) { return tasks_.insert(tasks_.end(), std::move(info)); }
  void Remove(Entry entry) { tasks_.erase(entry); }
  const std::list<TaskInfo>& tasks() const { return tasks_; }

 private:
  std::list<TaskInfo> tasks_;
};

// A thread's loop, and all state that lives on it: nothing else touches that, so it needs no locks.
// A program has one; the embedded ZooKeeper server has its own.
class Loop {
 public:
  // Runs on the system's clocks.
  Loop();
  // Runs on `clock`, which must outlive the loop; under one that a test moves nothing waits for real time.
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
  // As SleepUntil, for a wait whose note says something else.
  Task<> Elapse(SteadyTime when);

  // Runs until Stop() or until nothing is left to do.
  void Run();
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
T RunToEnd(Loop& loop, Task<T> task) {
  std::exception_ptr error;
  bool done = false;
  auto finish = [&](std::exception_ptr e) {
    error = e;
    done = true;
    loop.Stop();
  };
  if constexpr (std::is_void_v<T>) {
    boost::asio::co_spawn(loop.context(), std::move(task), [&](std::exception_ptr e) { finish(e); });
    loop.Run();
    if (error) std::rethrow_exception(error);
    if (!done) throw std::logic_error("the loop ran out of work before the task was done");
  } else {
    std::optional<T> result;
    boost::asio::co_spawn(loop.context(), std::move(task), [&](std::exception_ptr e, T value) {
      if (!e) result.emplace(std::move(value));
      finish(e);
    });
    loop.Run();
    if (error) std::rethrow_exception(error);
    if (!done) throw std::logic_error("the loop ran out of work before the task was done");
    return std::move(*result);
  }
}

// The machine's clocks. All timers share one Asio timer, armed for the earliest.
class SystemClock : public Clock {
 public:
  explicit SystemClock(boost::asio::io_context& context) : timer_(context) {}
  WallTime Now() const override { return std::chrono::system_clock::now(); }
  SteadyTime SteadyNow() const override { return std::chrono::steady_clock::now(); }
  TimerId CallAt(SteadyTime when, std::move_only_function<void()> callback) override;
  bool CancelTimer(TimerId id) override;

 private:
  void Arm();
  void RunDue();

  boost::asio::steady_timer timer_;
  TimerQueue queue_;
  SteadyTime armed_for_ = SteadyTime::max();
};

// A loop on a thread of its own, for a part of the program that must not delay the others, nor be
// delayed by them. Only its thread touches what lives on it; others give it tasks with Run().
class LoopThread {
 public:
  // `name`, of at most 15 characters, is what stack dumps show.
  explicit LoopThread(const std::string& name);
  ~LoopThread() { End(); }
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  // To construct what will live on it, and to destroy that after End().
  Loop& loop() { return loop_; }

  // Runs the task that `make()` returns there. The caller resumes on its own loop with the result or
  // the error. Cancellation of the caller does not reach the task.
  template <class Make>
  std::invoke_result_t<Make> Run(Make make) {
    namespace asio = boost::asio;
    auto token = asio::bind_cancellation_slot(asio::cancellation_slot(), asio::use_awaitable);
    co_return co_await asio::co_spawn(loop_.context(), std::move(make), token);
  }

  // Ends the thread after what is ready to run on its loop now. May be called again.
  void End();

 private:
  Loop loop_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;
};

}  // namespace nodepool
