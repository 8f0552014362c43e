#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

// Coroutines of the program. Rules (GCC 12 has defects around temporaries and
// captures): a coroutine takes its arguments by value under a name, a lambda that
// captures is never a coroutine, and aggregates are not built inside a co_await
// expression.
namespace nodepool {

// A coroutine that ends with a T or throws Error. It begins when it is awaited or spawned (task_group.h).
template <class T = void>
using Task = boost::asio::awaitable<T>;

// Awaited at the start of clean-up code that must run to its end although its task was cancelled:
// from here on the task ignores cancellation.
inline auto IgnoreCancellation() {
  return boost::asio::this_coro::reset_cancellation_state(boost::asio::disable_cancellation());
}

}  // namespace nodepool
