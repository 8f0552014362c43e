#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

namespace nodepool {

using Duration = std::chrono::nanoseconds;
using SteadyTime = std::chrono::time_point<std::chrono::steady_clock, Duration>;
using WallTime = std::chrono::time_point<std::chrono::system_clock, Duration>;

// Seconds since the epoch, as in records.
double ToSeconds(WallTime time);
WallTime FromSeconds(double seconds);

// The only source of time. No other code calls std::chrono::*_clock::now(), so a whole daemon can
// run under a clock that a test moves.
class Clock {
 public:
  using TimerId = std::uint64_t;

  virtual ~Clock() = default;
  virtual WallTime Now() const = 0;
  virtual SteadyTime SteadyNow() const = 0;

  // Calls `callback` once on the loop's thread at or after `when`; a time in the
  // past means "as soon as possible", never during this call. The id stays valid
  // until the callback ran or CancelTimer was called.
  virtual TimerId CallAt(SteadyTime when, std::move_only_function<void()> callback) = 0;

  // Returns whether the callback was still pending. It will not run afterwards.
  virtual bool CancelTimer(TimerId id) = 0;
};

// The pending timers of a clock, ordered by time and, among equals, by age.
class TimerQueue {
 public:
  Clock::TimerId Add(SteadyTime when, std::move_only_function<void()> callback);
  bool Remove(Clock::TimerId id);
  bool empty() const { return by_time_.empty(); }
  // Requires a non-empty queue.
  SteadyTime earliest() const { return by_time_.begin()->first.first; }
  // Removes and returns the earliest callback; requires a non-empty queue.
  std::move_only_function<void()> PopEarliest();

 private:
  using Key = std::pair<SteadyTime, Clock::TimerId>;
  std::map<Key, std::move_only_function<void()>> by_time_;
  std::unordered_map<Clock::TimerId, SteadyTime> when_;
  Clock::TimerId last_id_ = 0;
};

// Points in time as text, always in UTC. A reader returns nullopt for malformed text, and for times that the
// clock does not reach (after 2112) the last one that it does, as FromSeconds.

// "2026-01-31T12:00:00Z"; reads "+00:00" for "Z", too, and ignores a fraction of a second.
std::string Iso8601(WallTime time);
std::optional<WallTime> ParseIso8601(const std::string& text);

// "Sat, 31 Jan 2026 12:00:00 GMT", as in headers of HTTP.
std::string HttpDate(WallTime time);
std::optional<WallTime> ParseHttpDate(const std::string& text);

}  // namespace nodepool
