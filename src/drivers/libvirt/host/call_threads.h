#pragma once

#include <fmt/format.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "async/attempt.h"
#include "async/deadline.h"
#include "async/event.h"
#include "async/loop.h"

namespace nodepool::drivers::libvirt {

// The way from other threads to the loop, for threads that may live longer than it: what comes after Close()
// is dropped.
class LoopPort {
 public:
  explicit LoopPort(Loop& loop) : executor_(loop.executor()) {}

  // From any thread: runs `function` later on the loop.
  void Post(std::move_only_function<void()> function) {
    std::lock_guard lock(mutex_);
    if (is_open_) boost::asio::post(executor_, std::move(function));
  }
  // From the loop's thread.
  void Close() {
    std::lock_guard lock(mutex_);
    is_open_ = false;
  }

 private:
  boost::asio::any_io_executor executor_;
  std::mutex mutex_;
  bool is_open_ = true;
};

// The threads on which one host's calls block. Unlike those of BlockingPool they are abandoned when a call
// does not return: the caller's deadline ends its wait, and the process ends without them.
class CallThreads {
 public:
  // Threads are started with the first call. `loop` outlives this object.
  CallThreads(Loop& loop, std::size_t threads);
  ~CallThreads();
  CallThreads(const CallThreads&) = delete;
  CallThreads& operator=(const CallThreads&) = delete;

  // Runs `work` on a thread and returns its result or throws its Error. `work` must not touch what lives on
  // the loop, and may be carried out although the caller was cancelled. Error(kRetry): it has not returned
  // within `limit`; until it has, further calls are refused. `what` says in messages what is done.
  template <class Work, class Result = std::invoke_result_t<Work>>
  Task<Result> Run(std::string what, Duration limit, Work work);

  // As Run, without waiting for the end.
  void Post(std::move_only_function<void()> work);

  // What a call does that has not returned in time; nullopt: there is none.
  std::optional<std::string> Overdue() const;
  // Ends when no call is under way, at the latest at `deadline`.
  Task<> Drain(SteadyTime deadline);

 private:
  template <class Result>
  using ValueOf = std::conditional_t<std::is_void_v<Result>, std::monostate, Result>;

  struct Threads;
  struct Call {
    std::string what;
    SteadyTime deadline;
  };

  template <class Work>
  static Expected<ValueOf<std::invoke_result_t<Work>>> Result(Work& work);
  void Ended(std::list<Call>::iterator call);

  Loop& loop_;
  std::shared_ptr<LoopPort> port_;
  std::shared_ptr<Threads> threads_;
  std::list<Call> calls_;  // under way
  WaitList ended_;
};

template <class Work>
Expected<CallThreads::ValueOf<std::invoke_result_t<Work>>> CallThreads::Result(Work& work) {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Work>>) {
      work();
      return std::monostate();
    } else {
      return work();
    }
  } catch (const Error& error) {
    return std::unexpected(error);
  } catch (const std::exception& error) {
    return Unexpected(Verdict::kFail, error.what());
  }
}

template <class Work, class Result>
Task<Result> CallThreads::Run(std::string what, Duration limit, Work work) {
  if (std::optional<std::string> overdue = Overdue()) {
    throw Error(Verdict::kRetry, fmt::format("the host does not answer: {} has not ended", *overdue));
  }
  using Value = ValueOf<Result>;
  auto answer = std::make_shared<OneShot<Expected<Value>>>();
  SteadyTime deadline = loop_.SteadyNow() + limit;
  auto call = calls_.insert(calls_.end(), Call{what, deadline});
  // The answer is delivered on the loop, where this object still exists: its destructor closes the port.
  auto run = [this, call, port = port_, waiting = std::weak_ptr(answer), work = std::move(work)]() mutable {
    auto result = std::make_shared<Expected<Value>>(CallThreads::Result(work));
    port->Post([this, call, waiting, result] {
      Ended(call);
      if (auto answer = waiting.lock()) answer->Set(std::move(*result));
    });
  };
  Post(std::move(run));
  Task<Expected<Value>> wait = WithDeadline(loop_, deadline, what, answer->Take());
  Outcome<Expected<Value>> outcome = co_await Attempt(std::move(wait));
  if (FailedWith(outcome, Verdict::kTimedOut)) {
    throw Error(Verdict::kRetry, fmt::format("the host has not answered in time: {}", what));
  }
  if (!outcome) outcome.error().Rethrow();
  if (!*outcome) throw outcome->error();
  if constexpr (!std::is_void_v<Result>) co_return std::move(**outcome);
}

}  // namespace nodepool::drivers::libvirt
