#pragma once

#include <boost/asio/execution.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>
#include <type_traits>
#include <utility>

#include "async/task_registry.h"

namespace nodepool {

// An executor of the loop that knows the task it runs handlers for. It behaves as `Inner`; two are
// equal when their inner executors are.
template <class Inner>
class TaskExecutor {
 public:
  TaskExecutor(Inner inner, TaskInfo* task) noexcept : inner_(std::move(inner)), task_(task) {}

  // Lives longer than any coroutine of the task.
  TaskInfo* task() const { return task_; }

  template <class Function>
  void execute(Function&& function) const {
    inner_.execute(std::forward<Function>(function));
  }

  template <class Property>
    requires boost::asio::can_query<const Inner&, Property>::value
  decltype(auto) query(const Property& property) const
      noexcept(boost::asio::is_nothrow_query<const Inner&, Property>::value) {
    return boost::asio::query(inner_, property);
  }

  template <class Property>
    requires boost::asio::can_require<const Inner&, Property>::value
  auto require(const Property& property) const
      noexcept(boost::asio::is_nothrow_require<const Inner&, Property>::value) {
    using Required = std::decay_t<typename boost::asio::require_result<const Inner&, Property>::type>;
    return TaskExecutor<Required>(boost::asio::require(inner_, property), task_);
  }

  friend bool operator==(const TaskExecutor& a, const TaskExecutor& b) noexcept {
    return a.inner_ == b.inner_;
  }

 private:
  Inner inner_;
  TaskInfo* task_;
};

}  // namespace nodepool
