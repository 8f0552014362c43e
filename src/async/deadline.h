#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "async/loop.h"
#include "base/error.h"

namespace nodepool {

// Whether `task` ended by `deadline`: for waits that may run out of time. When time is up first,
// the task is cancelled and its end awaited; if it completed all the same, that counts as ended,
// and an error that it ended with is thrown. Cancelling the caller cancels the task. `what` says in
// a task dump what is awaited.
Task<bool> EndsBy(Loop& loop, SteadyTime deadline, std::string what, Task<> task);

namespace internal {

// Puts the result of `task` into `result`, which outlives it.
template <class T>
Task<> Keep(Task<T> task, std::optional<T>& result) {
  result.emplace(co_await std::move(task));
}

}  // namespace internal

// The same for work that counts as failed at its deadline: Error(kTimedOut, "<what> timed out").
template <class T>
Task<T> WithDeadline(Loop& loop, SteadyTime deadline, std::string what, Task<T> task) {
  std::optional<T> result;
  bool has_ended = co_await EndsBy(loop, deadline, what, internal::Keep(std::move(task), result));
  if (!has_ended) throw Error(Verdict::kTimedOut, what + " timed out");
  co_return std::move(*result);
}
Task<> WithDeadline(Loop& loop, SteadyTime deadline, std::string what, Task<> task);

// Calls a function on the loop at a time that may be set again and again; not after its destruction.
class Alarm {
 public:
  // The loop outlives it.
  Alarm(Loop& loop, std::function<void()> ring) : loop_(loop), ring_(std::move(ring)) {}
  ~Alarm() { Cancel(); }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  bool is_set() const { return timer_.has_value(); }
  // In place of the time that was set before.
  void SetFor(SteadyTime when) {
    Cancel();
    auto due = [this] {
      timer_.reset();
      ring_();
    };
    timer_ = loop_.clock().CallAt(when, due);
  }
  void Cancel() {
    if (auto timer = std::exchange(timer_, std::nullopt)) loop_.clock().CancelTimer(*timer);
  }

 private:
  Loop& loop_;
  std::function<void()> ring_;
  std::optional<Clock::TimerId> timer_;
};

}  // namespace nodepool
