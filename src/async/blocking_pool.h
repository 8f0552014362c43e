#pragma once

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <optional>
#include <type_traits>
#include <variant>

#include "async/loop.h"
#include "async/task.h"

namespace nodepool {

// A few threads for libraries that block. Work is given to it only through OnBlockingPool.
class BlockingPool {
 public:
  // With 0 threads, work runs where it is given to the pool and holds up the loop: for tests in virtual time,
  // which does not wait for threads.
  explicit BlockingPool(std::size_t threads = 8);
  ~BlockingPool() {
    if (pool_) pool_->join();
  }

  template <class Run>
  void Post(Run run) {
    if (pool_) {
      boost::asio::post(*pool_, std::move(run));
    } else {
      run();
    }
  }

 private:
  std::optional<boost::asio::thread_pool> pool_;
};

// Runs `work` on a thread of the pool and resumes on the loop with its result or its exception.
// `work` must not touch anything that lives on the loop, must bound its own time, and is not
// interrupted by cancellation.
template <class Work, class Result = std::invoke_result_t<Work>>
Task<Result> OnBlockingPool(BlockingPool& pool, Work work) {
  namespace asio = boost::asio;
  using Value = std::conditional_t<std::is_void_v<Result>, std::monostate, std::optional<Result>>;
  auto initiate = [&pool, work = std::move(work)](auto handler) mutable {
    auto guard = asio::make_work_guard(asio::get_associated_executor(handler));
    auto run = [work = std::move(work), handler = std::move(handler), guard = std::move(guard)]() mutable {
      std::exception_ptr error;
      Value value{};
      try {
        if constexpr (std::is_void_v<Result>) {
          work();
        } else {
          value.emplace(work());
        }
      } catch (...) {
        error = std::current_exception();
      }
      auto executor = guard.get_executor();
      asio::post(executor, [handler = std::move(handler), error, value = std::move(value)]() mutable {
        handler(error, std::move(value));
      });
    };
    pool.Post(std::move(run));
  };
  auto executor = co_await asio::this_coro::executor;
  AwaitNote note(executor, "the blocking pool");
  Value value = co_await asio::async_initiate<const asio::use_awaitable_t<>, void(std::exception_ptr, Value)>(
      std::move(initiate), asio::use_awaitable);
  if constexpr (!std::is_void_v<Result>) co_return std::move(*value);
}

}  // namespace nodepool
