#pragma once

#include <cstdint>
#include <functional>

#include "async/loop.h"

namespace nodepool {

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
