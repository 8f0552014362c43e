#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "async/attempt.h"
#include "async/event.h"

namespace nodepool::driver::cloud {

// Looks again at something, one look at a time. Whoever asks gets the result of a look that began after the
// question; all who ask while one is under way share the next.
class SecondLook {
 public:
  explicit SecondLook(std::function<Task<>()> look) : look_(std::move(look)) {}
  SecondLook(const SecondLook&) = delete;
  SecondLook& operator=(const SecondLook&) = delete;

  // Fails as the look does.
  Task<> Take();

 private:
  Task<> LookOnce();

  std::function<Task<>()> look_;
  bool is_looking_ = false;
  std::uint64_t begun_ = 0;
  std::uint64_t ended_ = 0;  // the number of the last one that ended
  std::optional<Failure> failure_;  // its
  WaitList end_;
};

}  // namespace nodepool::driver::cloud
