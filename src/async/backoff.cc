#include "async/backoff.h"

#include <algorithm>
#include <utility>

namespace nodepool {

Duration Backoff::Next() {
  double spread = random_.Between(1 - settings_.jitter, 1 + settings_.jitter);
  auto pause = std::chrono::duration_cast<Duration>(base_ * spread);
  auto next = std::chrono::duration_cast<Duration>(base_ * settings_.factor);
  base_ = std::min(next, settings_.max);
  return std::min(pause, settings_.max);
}

LogThrottle::LogThrottle(Loop& loop, Summarize summarize, int lines, Duration period)
    : loop_(loop),
      summarize_(std::move(summarize)),
      lines_(static_cast<std::uint64_t>(lines)),
      period_(period) {}

LogThrottle::~LogThrottle() {
  if (timer_ != 0) loop_.clock().CancelTimer(timer_);
  EndPeriod();
}

bool LogThrottle::Admits() {
  if (timer_ == 0) timer_ = loop_.clock().CallAt(loop_.SteadyNow() + period_, [this] { EndPeriod(); });
  return ++asked_ <= lines_;
}

void LogThrottle::EndPeriod() {
  timer_ = 0;
  std::uint64_t asked = std::exchange(asked_, 0);
  if (asked > lines_) summarize_(asked - lines_);
}

}  // namespace nodepool
