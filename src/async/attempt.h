#pragma once

#include <exception>
#include <expected>
#include <string>
#include <utility>

#include "async/task.h"
#include "base/error.h"

namespace nodepool {

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

}  // namespace nodepool
