#include "base/clock.h"

#include <algorithm>
#include <cmath>

namespace nodepool {

// Both directions convert seconds and their fraction separately: a double of seconds is less exact
// than nanoseconds, and a time stamp must survive reading and writing.
double ToSeconds(WallTime time) {
  Duration since_epoch = time.time_since_epoch();
  auto whole = std::chrono::floor<std::chrono::seconds>(since_epoch);
  return static_cast<double>(whole.count()) + static_cast<double>((since_epoch - whole).count()) / 1e9;
}

WallTime FromSeconds(double seconds) {
  // A clock of nanoseconds has about 292 years either side of 1970, and records may hold anything: of half of
  // that any two times have a difference, too.
  constexpr double kLimit = 4.5e9;
  double bounded = seconds == seconds ? std::clamp(seconds, -kLimit, kLimit) : 0;
  double whole = std::floor(bounded);
  return WallTime(std::chrono::seconds(static_cast<std::int64_t>(whole)) +
                  Duration(std::llround((bounded - whole) * 1e9)));
}

Clock::TimerId TimerQueue::Add(SteadyTime when, std::move_only_function<void()> callback) {
  Clock::TimerId id = ++last_id_;
  by_time_.emplace(Key(when, id), std::move(callback));
  when_.emplace(id, when);
  return id;
}

bool TimerQueue::Remove(Clock::TimerId id) {
  auto it = when_.find(id);
  if (it == when_.end()) return false;
  by_time_.erase(Key(it->second, id));
  when_.erase(it);
  return true;
}

std::move_only_function<void()> TimerQueue::PopEarliest() {
  auto node = by_time_.extract(by_time_.begin());
  when_.erase(node.key().second);
  return std::move(node.mapped());
}

ManualClock::ManualClock(WallTime start) : start_(start) {}

Clock::TimerId ManualClock::CallAt(SteadyTime when, std::move_only_function<void()> callback) {
  return timers_.Add(when, std::move(callback));
}

bool ManualClock::CancelTimer(TimerId id) { return timers_.Remove(id); }

void ManualClock::AdvanceTo(SteadyTime when) {
  while (!timers_.empty() && timers_.earliest() <= when) {
    elapsed_ = std::max(elapsed_, timers_.earliest().time_since_epoch());
    timers_.PopEarliest()();
  }
  elapsed_ = std::max(elapsed_, when.time_since_epoch());
}

}  // namespace nodepool
