#include "async/deadline.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>

#include "async/await_note.h"

namespace nodepool {

namespace asio = boost::asio;

Task<bool> EndsBy(Loop& loop, SteadyTime deadline, std::string what, Task<> task) {
  auto executor = co_await asio::this_coro::executor;
  AwaitNote note(executor, what, {}, deadline);
  auto [order, task_error, timer_error] =
      co_await asio::experimental::make_parallel_group(
          asio::co_spawn(executor, std::move(task), asio::deferred),
          asio::co_spawn(executor, loop.Elapse(deadline), asio::deferred))
          .async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
  bool is_time_up = order[0] == 1 && !timer_error;
  if (task_error && is_time_up && VerdictOf(task_error) == Verdict::kCancelled) co_return false;
  if (task_error) std::rethrow_exception(task_error);
  co_return true;
}

Task<> WithDeadline(Loop& loop, SteadyTime deadline, std::string what, Task<> task) {
  bool has_ended = co_await EndsBy(loop, deadline, what, std::move(task));
  if (!has_ended) throw Error(Verdict::kTimedOut, what + " timed out");
}

}  // namespace nodepool
