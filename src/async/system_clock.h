#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/clock.h"

namespace nodepool {

// The machine's clocks. All timers share one Asio timer, armed for the earliest.
class SystemClock : public Clock {
 public:
  explicit SystemClock(boost::asio::io_context& context) : timer_(context) {}
  WallTime Now() const override { return std::chrono::system_clock::now(); }
  SteadyTime SteadyNow() const override { return std::chrono::steady_clock::now(); }
  TimerId CallAt(SteadyTime when, std::move_only_function<void()> callback) override;
  bool CancelTimer(TimerId id) override;

 private:
  void Arm();
  void RunDue();

  boost::asio::steady_timer timer_;
  TimerQueue queue_;
  SteadyTime armed_for_ = SteadyTime::max();
};

}  // namespace nodepool
