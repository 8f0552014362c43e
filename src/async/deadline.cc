#include "async/deadline.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>

#include "async/loop.h"
#include "base/scope_exit.h"

namespace nodepool {

namespace asio = boost::asio;

Task<bool> EndsBy(Loop& loop, SteadyTime deadline, std::string what, Task<> task) {
  auto executor = co_await asio::this_coro::executor;
  AwaitNote note(executor, what, {}, deadline);
  bool is_time_up = false, is_cancelled = false;
  asio::cancellation_signal stop;
  auto time_is_up = [&] {
    if (is_cancelled) return;
    is_time_up = true;
    stop.emit(asio::cancellation_type::all);
  };
  ScopeExit disarm([&clock = loop.clock(), timer = loop.clock().CallAt(deadline, time_is_up)] {
    clock.CancelTimer(timer);
  });
  // Nothing else listens to the caller's cancellation while its task is another one.
  asio::cancellation_slot caller = (co_await asio::this_coro::cancellation_state).slot();
  if (caller.is_connected()) {
    caller.assign([&](asio::cancellation_type type) {
      is_cancelled = true;
      if (!is_time_up) stop.emit(type);
    });
  }
  ScopeExit forget([caller]() mutable { caller.clear(); });
  auto [error] =
      co_await asio::co_spawn(executor, std::move(task),
                              asio::bind_cancellation_slot(stop.slot(), asio::as_tuple(asio::use_awaitable)));
  if (error && is_time_up && VerdictOf(error) == Verdict::kCancelled) co_return false;
  if (error) std::rethrow_exception(error);
  co_return true;
}

Task<> WithDeadline(Loop& loop, SteadyTime deadline, std::string what, Task<> task) {
  bool has_ended = co_await EndsBy(loop, deadline, what, std::move(task));
  if (!has_ended) throw Error(Verdict::kTimedOut, what + " timed out");
}

}  // namespace nodepool
