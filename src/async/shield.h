#pragma once

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>

#include "async/task.h"

namespace nodepool {

// For clean-up after a failure, which may be that the task was told to stop:
//
//   co_await StayAwake();
//   co_await Shielded(...);
//
// The first keeps a cancelled task from throwing at its next await.
inline auto StayAwake() { return boost::asio::this_coro::throw_if_cancelled(false); }

// Awaits `task` to its end: being told to stop meanwhile does not reach it; the
// caller feels that at its next await. Undoes StayAwake().
inline Task<> Shielded(Task<> task) {
  namespace asio = boost::asio;
  auto executor = co_await asio::this_coro::executor;
  co_await asio::co_spawn(executor, std::move(task),
                          asio::bind_cancellation_slot(asio::cancellation_slot(), asio::use_awaitable));
  co_await asio::this_coro::throw_if_cancelled(true);
}

}  // namespace nodepool
