#pragma once

#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <optional>
#include <stdexcept>

#include "async/loop.h"

namespace nodepool {

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

}  // namespace nodepool
