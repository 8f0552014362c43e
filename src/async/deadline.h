#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <string>

#include "async/await_note.h"
#include "async/loop.h"
#include "base/error.h"

namespace nodepool {

// Awaits `task` until `deadline`. When time is up first, the task is cancelled and
// its end awaited, then Error(kRetry, "<what> timed out") is thrown; a result that
// arrived all the same is returned. Cancelling the caller cancels the task.
// T must be default constructible.
template <class T>
Task<T> WithDeadline(Loop& loop, SteadyTime deadline, std::string what, Task<T> task) {
  namespace asio = boost::asio;
  auto executor = co_await asio::this_coro::executor;
  AwaitNote note(executor, what, {}, deadline);
  auto outcome = co_await asio::experimental::make_parallel_group(
                     asio::co_spawn(executor, std::move(task), asio::deferred),
                     asio::co_spawn(executor, loop.Elapse(deadline), asio::deferred))
                     .async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
  std::exception_ptr task_error = std::get<1>(outcome);
  bool time_is_up =
      std::get<0>(outcome)[0] == 1 && !std::get<std::tuple_size_v<decltype(outcome)> - 1>(outcome);
  if (task_error && time_is_up && VerdictOf(task_error) == Verdict::kCancelled) {
    throw Error(Verdict::kRetry, what + " timed out");
  }
  if (task_error) std::rethrow_exception(task_error);
  if constexpr (!std::is_void_v<T>) co_return std::move(std::get<2>(outcome));
}

}  // namespace nodepool
