#pragma once

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <string>
#include <thread>
#include <type_traits>

#include "async/loop.h"

namespace nodepool {

// A loop on a thread of its own, for a part of the program that must not delay the others, nor be
// delayed by them. Only its thread touches what lives on it; others give it tasks with Run().
class LoopThread {
 public:
  // `name`, of at most 15 characters, is what stack dumps show.
  explicit LoopThread(const std::string& name);
  ~LoopThread() { End(); }
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  // To construct what will live on it, and to destroy that after End().
  Loop& loop() { return loop_; }

  // Runs the task that `make()` returns there. The caller resumes on its own loop with the result or
  // the error. Cancellation of the caller does not reach the task.
  template <class Make>
  std::invoke_result_t<Make> Run(Make make) {
    namespace asio = boost::asio;
    auto token = asio::bind_cancellation_slot(asio::cancellation_slot(), asio::use_awaitable);
    co_return co_await asio::co_spawn(loop_.context(), std::move(make), token);
  }

  // Ends the thread after what is ready to run on its loop now. May be called again.
  void End();

 private:
  Loop loop_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;
};

}  // namespace nodepool
