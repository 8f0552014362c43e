#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "async/loop.h"

namespace nodepool {

// Calls a function on the loop at a time that may be set again and again; not after its destruction.
class Alarm {
 public:
  // The loop outlives it.
  Alarm(Loop& loop, std::function<void()> ring) : loop_(loop), ring_(std::move(ring)) {}
  ~Alarm() { Cancel(); }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  bool is_set() const { return timer_.has_value(); }
  // In place of the time that was set before.
  void SetFor(SteadyTime when) {
    Cancel();
    auto due = [this] {
      timer_.reset();
      ring_();
    };
    timer_ = loop_.clock().CallAt(when, due);
  }
  void Cancel() {
    if (auto timer = std::exchange(timer_, std::nullopt)) loop_.clock().CancelTimer(*timer);
  }

 private:
  Loop& loop_;
  std::function<void()> ring_;
  std::optional<Clock::TimerId> timer_;
};

}  // namespace nodepool
