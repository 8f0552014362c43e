#pragma once

#include <cstdint>
#include <functional>

#include "async/loop.h"
#include "base/clock.h"
#include "base/ids.h"

namespace nodepool {

// Growing pauses between attempts: the first is `initial`, each next one is `factor` times the
// former up to `max`, and every pause is varied by ±`jitter` so that many clients do not return at
// the same moment.
class Backoff {
 public:
  struct Settings {
    Duration initial = std::chrono::milliseconds(100);
    Duration max = std::chrono::seconds(5);
    double factor = 2.0;
    double jitter = 0.4;
  };

  Backoff(Settings settings, Random& random)
      : settings_(settings), random_(random), base_(settings.initial) {}

  Duration Next();
  void Reset() { base_ = settings_.initial; }

 private:
  Settings settings_;
  Random& random_;
  Duration base_;
};

// How long a task computes without a pause.
struct Stretch {
  Duration time = std::chrono::milliseconds(5);
  // Bytes. The clock is read once for so much work: reading it costs as much as a small step.
  std::size_t work_between_looks = 16 * 1024;
};

// Keeps a task that computes for long from blocking the loop:
//
//   for (const Row& row : rows) {
//     Append(text, row);
//     if (pace.is_due(row.size())) co_await pace.Pause();
//   }
//
// Whatever the task refers to can change during a pause.
class Pace {
 public:
  // A pause is due after each step.
  static constexpr Stretch kEachStep{Duration::zero(), 0};

  explicit Pace(Loop& loop, Stretch stretch = {})
      : loop_(loop), stretch_(stretch), due_(loop.SteadyNow() + stretch.time) {}

  // After each step: whether the task has computed for a stretch since it began or last paused. `bytes` is
  // what the step has handled.
  bool is_due(std::size_t bytes = 0) {
    work_ += kStep + bytes;
    if (work_ < stretch_.work_between_looks) return false;
    work_ = 0;
    return loop_.SteadyNow() >= due_;
  }
  Task<> Pause() {
    co_await loop_.GiveWay();
    due_ = loop_.SteadyNow() + stretch_.time;
  }

 private:
  static constexpr std::size_t kStep = 64;  // the work of a step without bytes, in bytes

  Loop& loop_;
  Stretch stretch_;
  SteadyTime due_;
  std::size_t work_ = 0;  // since the clock was read
};

// Bounds the log lines that a party outside can cause: the first of each period are logged, and at
// its end how many more there were.
class LogThrottle {
 public:
  // Called at the end of a period with the number of lines that were left out, if any.
  using Summarize = std::function<void(std::uint64_t more)>;

  explicit LogThrottle(Loop& loop, Summarize summarize, int lines = 10,
                       Duration period = std::chrono::minutes(1));
  ~LogThrottle();  // summarizes what it has left out so far
  LogThrottle(const LogThrottle&) = delete;
  LogThrottle& operator=(const LogThrottle&) = delete;

  // Whether to log a line now; counts it otherwise.
  bool Admits();

 private:
  void EndPeriod();

  Loop& loop_;
  Summarize summarize_;
  const std::uint64_t lines_;
  const Duration period_;
  Clock::TimerId timer_ = 0;  // 0: no period has begun
  std::uint64_t asked_ = 0;   // in this period
};

}  // namespace nodepool
