#pragma once

#include "async/loop.h"

namespace nodepool {

// Keeps a task that computes for long from blocking the loop:
//
//   for (const Row& row : rows) {
//     Append(text, row);
//     if (pace.is_due()) co_await pace.Pause();
//   }
//
// Whatever the task refers to can change during a pause.
class Pace {
 public:
  static constexpr Duration kStretch = std::chrono::milliseconds(5);

  explicit Pace(Loop& loop, Duration stretch = kStretch)
      : loop_(loop), stretch_(stretch), due_(loop.SteadyNow() + stretch) {}

  // Whether the task has computed for a stretch since it began or last paused.
  bool is_due() const { return loop_.SteadyNow() >= due_; }
  Task<> Pause() {
    co_await loop_.GiveWay();
    due_ = loop_.SteadyNow() + stretch_;
  }

 private:
  Loop& loop_;
  Duration stretch_;
  SteadyTime due_;
};

}  // namespace nodepool
