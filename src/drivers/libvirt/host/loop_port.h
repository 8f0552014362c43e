#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <mutex>

#include "async/loop.h"

namespace nodepool::drivers::libvirt {

// The way from other threads to the loop, for threads that may live longer than it: what comes after Close()
// is dropped.
class LoopPort {
 public:
  explicit LoopPort(Loop& loop) : executor_(loop.executor()) {}

  // From any thread: runs `function` later on the loop.
  void Post(std::move_only_function<void()> function) {
    std::lock_guard lock(mutex_);
    if (is_open_) boost::asio::post(executor_, std::move(function));
  }
  // From the loop's thread.
  void Close() {
    std::lock_guard lock(mutex_);
    is_open_ = false;
  }

 private:
  boost::asio::any_io_executor executor_;
  std::mutex mutex_;
  bool is_open_ = true;
};

}  // namespace nodepool::drivers::libvirt
