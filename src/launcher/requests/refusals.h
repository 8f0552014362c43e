#pragma once

#include "async/backoff.h"
#include "base/clock.h"
#include "base/random.h"

namespace nodepool::launcher {

// How often the cloud refused launches of a request for quota; after each time the request pauses.
class Refusals {
 public:
  explicit Refusals(Random& random) : backoff_({std::chrono::seconds(1), std::chrono::seconds(10)}, random) {}

  // Refusals during a pause are of launches that began before it.
  void Add(SteadyTime now) {
    if (IsPausing(now)) return;
    pause_until_ = now + backoff_.Next();
    ++count_;
  }
  bool IsPausing(SteadyTime now) const { return now < pause_until_; }
  SteadyTime pause_until() const { return pause_until_; }
  int count() const { return count_; }

 private:
  Backoff backoff_;
  SteadyTime pause_until_{};
  int count_ = 0;
};

}  // namespace nodepool::launcher
