#pragma once

#include <optional>
#include <string>
#include <utility>

#include "async/backoff.h"
#include "base/clock.h"
#include "base/random.h"
#include "sched/requests/fill.h"

namespace nodepool::launcher {

// What the cloud has refused to a request, for quota or since it has no capacity, and how often; after each
// refusal the request pauses.
class Refusals {
 public:
  struct Refusal {
    sched::Refused what;
    bool lacks_capacity = false;  // and not quota
    std::string why = {};         // for operators
  };

  explicit Refusals(Random& random)
      : quota_pauses_({std::chrono::seconds(1), std::chrono::seconds(10)}, random),
        capacity_pauses_({std::chrono::seconds(1), std::chrono::seconds(60)}, random) {}

  // Refusals during a pause do not count: their launches began before it.
  void Add(Refusal refusal, SteadyTime now) {
    if (refusal.lacks_capacity && !lacks_capacity_since_) lacks_capacity_since_ = now;
    if (IsPausing(now)) return;
    pause_until_ = now + (refusal.lacks_capacity ? capacity_pauses_ : quota_pauses_).Next();
    what_ = std::move(refusal.what);
    ++count_;
  }
  void EndPause() { pause_until_ = {}; }
  bool IsPausing(SteadyTime now) const { return now < pause_until_; }
  SteadyTime pause_until() const { return pause_until_; }
  int count() const { return count_; }
  // The last one.
  const sched::Refused& what() const { return what_; }
  // Since when the cloud has had no capacity; none: it was never the reason.
  std::optional<SteadyTime> lacks_capacity_since() const { return lacks_capacity_since_; }

 private:
  Backoff quota_pauses_;
  Backoff capacity_pauses_;
  SteadyTime pause_until_{};
  int count_ = 0;
  sched::Refused what_;
  std::optional<SteadyTime> lacks_capacity_since_;
};

}  // namespace nodepool::launcher
