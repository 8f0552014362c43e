#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "async/attempt.h"
#include "async/event.h"
#include "async/loop.h"

namespace nodepool::driver::cloud {

// Looks again at something, one look at a time, of which at most one begins in a second. Whoever asks gets
// the result of a look that began after the question; all who ask before it begins share it.
class SecondLook {
 public:
  SecondLook(Loop& loop, std::function<Task<>()> look) : loop_(loop), look_(std::move(look)) {}
  SecondLook(const SecondLook&) = delete;
  SecondLook& operator=(const SecondLook&) = delete;

  // Fails as the look does.
  Task<> Take();

 private:
  Task<> LookOnce();

  Loop& loop_;
  std::function<Task<>()> look_;
  SteadyTime next_begin_{};  // not before
  bool is_looking_ = false;
  std::uint64_t begun_ = 0;
  std::uint64_t ended_ = 0;         // the number of the last one that ended
  std::optional<Failure> failure_;  // its
  WaitList end_;
};

}  // namespace nodepool::driver::cloud
