#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <expected>
#include <functional>
#include <string>
#include <utility>

#include "base/error.h"

namespace nodepool {

// Coroutines of the program. Rules (GCC 12 has defects around temporaries and
// captures): a coroutine takes its arguments by value under a name, a lambda that
// captures is never a coroutine, and aggregates are not built inside a co_await
// expression.

// A coroutine that ends with a T or throws Error. It begins when it is awaited or spawned (task_group.h).
template <class T = void>
using Task = boost::asio::awaitable<T>;

// Awaited at the start of clean-up code that must run to its end although its task was cancelled:
// from here on the task ignores cancellation.
inline auto IgnoreCancellation() {
  return boost::asio::this_coro::reset_cancellation_state(boost::asio::disable_cancellation());
}

// Why a task failed. Holds the exception, so that it can be rethrown with its own type.
class Failure {
 public:
  explicit Failure(std::exception_ptr exception) : exception_(std::move(exception)) {}
  explicit Failure(Error error) : exception_(std::make_exception_ptr(std::move(error))) {}

  Verdict verdict() const { return VerdictOf(exception_); }
  std::string message() const { return MessageOf(exception_); }
  const std::exception_ptr& exception() const { return exception_; }
  [[noreturn]] void Rethrow() const { std::rethrow_exception(exception_); }

 private:
  std::exception_ptr exception_;
};

// How a task ended: with its result, or with a Failure.
template <class T = void>
using Outcome = std::expected<T, Failure>;

// Whether it failed with one of the verdicts.
template <class T, class... Verdicts>
bool FailedWith(const Outcome<T>& outcome, Verdicts... verdicts) {
  return !outcome && ((outcome.error().verdict() == verdicts) || ...);
}

// Awaits `task` and returns how it ended. Throws only kCancelled: a cancelled task does not go on
// as if the step had failed. (GCC 12 cannot await in a catch block.)
//
//   Outcome<> deleted = co_await Attempt(client.Delete(path));
//   if (!deleted) logger.Warning("{} could not be deleted: {}", path, deleted.error().message());
template <class T>
Task<Outcome<T>> Attempt(Task<T> task) {
  std::exception_ptr error;
  try {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(task);
      co_return Outcome<T>();
    } else {
      Outcome<T> outcome(co_await std::move(task));
      co_return outcome;
    }
  } catch (...) {
    error = std::current_exception();
  }
  if (VerdictOf(error) == Verdict::kCancelled) std::rethrow_exception(error);
  co_return std::unexpected(Failure(std::move(error)));
}

// Steps that must run to their end whatever happens before them, also when their task is cancelled.
// A cancelled task throws at its next co_await, so a clean-up that is merely awaited would never
// begin; these begin and finish it by construction.

// Awaits `task`, which cancellation of the caller does not reach once it has begun: the caller
// throws kCancelled at its next co_await instead. For a single step; a step that must also begin in
// a task that was cancelled before belongs in the clean-up of one of the functions below.
inline Task<> Uninterrupted(Task<> task) {
  namespace asio = boost::asio;
  auto executor = co_await asio::this_coro::executor;
  co_await asio::co_spawn(executor, std::move(task),
                          asio::bind_cancellation_slot(asio::cancellation_slot(), asio::use_awaitable));
}

namespace internal {

// Returns how `task` ended, cancellation included. So a cancelled caller throws only inside `task`.
template <class T>
Task<Outcome<T>> Settle(Task<T> task) {
  std::exception_ptr error;
  try {
    co_await boost::asio::this_coro::throw_if_cancelled(true);
    if constexpr (std::is_void_v<T>) {
      co_await std::move(task);
      co_return Outcome<T>();
    } else {
      Outcome<T> outcome(co_await std::move(task));
      co_return outcome;
    }
  } catch (...) {
    error = std::current_exception();
  }
  co_return std::unexpected(Failure(std::move(error)));
}

// Runs the task that `make` returns where no cancellation reaches it. Must be awaited after
// throw_if_cancelled(false), which it undoes.
template <class MakeTask>
Task<Outcome<>> RunShielded(MakeTask make) {
  std::exception_ptr error;
  try {
    Task<> task = make();
    co_await Uninterrupted(std::move(task));
  } catch (...) {
    error = std::current_exception();
  }
  co_await boost::asio::this_coro::throw_if_cancelled(true);
  if (!error) co_return Outcome<>();
  co_return std::unexpected(Failure(std::move(error)));
}

}  // namespace internal

// Awaits `work`, then the Task<> that `cleanup()` returns, however `work` ended; then returns the
// result of `work` or throws its error. `cleanup` is called once, and only if `work` has begun:
// `work` itself must create what is to be cleaned up, not code before it (see Bracket). An error of
// the clean-up is thrown if `work` succeeded.
template <class T, class Cleanup>
Task<T> WithCleanup(Task<T> work, Cleanup cleanup) {
  Outcome<T> outcome = co_await internal::Settle(std::move(work));
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  Outcome<> cleaned = co_await internal::RunShielded(std::ref(cleanup));
  if (!outcome) outcome.error().Rethrow();
  if (!cleaned) cleaned.error().Rethrow();
  if constexpr (!std::is_void_v<T>) co_return std::move(*outcome);
}

// As WithCleanup, but only if `work` failed (or was cancelled): `cleanup` gets the Failure. The
// error of `work` is thrown in any case.
template <class T, class Cleanup>
Task<T> OnFailure(Task<T> work, Cleanup cleanup) {
  Outcome<T> outcome = co_await internal::Settle(std::move(work));
  if (!outcome) {
    co_await boost::asio::this_coro::throw_if_cancelled(false);
    auto make = [&] { return cleanup(std::as_const(outcome.error())); };
    co_await internal::RunShielded(make);
    outcome.error().Rethrow();
  }
  if constexpr (!std::is_void_v<T>) co_return std::move(*outcome);
}

// Acquires something, uses it and releases it: `use(resource)` and `release(resource)` return tasks
// and get it by reference. However the use ends, also when the task is cancelled at the moment when
// it has acquired, the release runs to its end.
template <class Resource, class Use, class Release>
auto Bracket(Task<Resource> acquire, Use use, Release release) -> decltype(use(std::declval<Resource&>())) {
  Resource resource = co_await std::move(acquire);
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  auto work = use(resource);
  auto outcome = co_await internal::Settle(std::move(work));
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  auto make = [&] { return release(resource); };
  Outcome<> released = co_await internal::RunShielded(make);
  if (!outcome) outcome.error().Rethrow();
  if (!released) released.error().Rethrow();
  if constexpr (!std::is_void_v<typename decltype(outcome)::value_type>) co_return std::move(*outcome);
}

}  // namespace nodepool
