#pragma once

#include "async/loop.h"

namespace nodepool {

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

}  // namespace nodepool
