#pragma once

#include "async/loop.h"
#include "base/log/logging.h"

namespace nodepool::daemon {

// Logs jumps of the system's clock, with which the ages of records are computed. No wait depends on it.
class ClockWatch {
 public:
  // `loop` outlives this.
  explicit ClockWatch(Loop& loop);
  ~ClockWatch() { loop_.clock().CancelTimer(timer_); }
  ClockWatch(const ClockWatch&) = delete;
  ClockWatch& operator=(const ClockWatch&) = delete;

 private:
  void Check();
  void Wait();
  // What the clock is ahead of the time since some moment, which changes only when it is set.
  Duration Offset() const { return loop_.Now().time_since_epoch() - loop_.SteadyNow().time_since_epoch(); }

  Loop& loop_;
  log::Logger logger_{"nodepool.clock"};
  Duration offset_;
  Clock::TimerId timer_ = 0;
};

}  // namespace nodepool::daemon
