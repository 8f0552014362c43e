#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>
#include <memory>
#include <utility>

#include "async/event.h"

namespace nodepool::driver::testing {

// Cancels a task after a number of its turns, i.e. at a certain await.
struct Interruption {
  static constexpr int kNever = -1;
  int turns_left = kNever;  // 0: at once
  int turns = 0;            // how many turns there were
  bool has_happened = false;
  boost::asio::cancellation_signal signal;
  Event ended{"the end of a task"};

  void Interrupt() {
    has_happened = true;
    signal.emit(boost::asio::cancellation_type::terminal);
  }
  void TurnEnded() {
    ++turns;
    if (turns_left > 0 && --turns_left == 0) Interrupt();
  }
};

// An executor that counts the turns of the task that runs on it; otherwise as `Inner`.
template <class Inner>
class CountingExecutor {
 public:
  CountingExecutor(Inner inner, std::shared_ptr<Interruption> interruption) noexcept
      : inner_(std::move(inner)), interruption_(std::move(interruption)) {}

  template <class Function>
  void execute(Function&& function) const {
    auto turn = [function = std::forward<Function>(function), interruption = interruption_]() mutable {
      std::move(function)();
      interruption->TurnEnded();
    };
    inner_.execute(std::move(turn));
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
    return CountingExecutor<Required>(boost::asio::require(inner_, property), interruption_);
  }

  friend bool operator==(const CountingExecutor& a, const CountingExecutor& b) noexcept {
    return a.inner_ == b.inner_;
  }

 private:
  Inner inner_;
  std::shared_ptr<Interruption> interruption_;
};

// Starts `task`, which is cancelled after `turns` of its turns; `ended` is set at its end.
inline std::shared_ptr<Interruption> StartInterrupted(Loop& loop, Task<> task, int turns) {
  struct OnEnd {
    using cancellation_slot_type = boost::asio::cancellation_slot;
    std::shared_ptr<Interruption> interruption;
    cancellation_slot_type get_cancellation_slot() const noexcept { return interruption->signal.slot(); }
    void operator()(std::exception_ptr) { interruption->ended.Set(); }
  };
  auto interruption = std::make_shared<Interruption>();
  interruption->turns_left = turns;
  boost::asio::any_io_executor executor = CountingExecutor(loop.context().get_executor(), interruption);
  boost::asio::co_spawn(executor, std::move(task), OnEnd{interruption});
  if (turns == 0) interruption->Interrupt();
  return interruption;
}

}  // namespace nodepool::driver::testing
