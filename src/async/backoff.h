#pragma once

#include "base/clock.h"
#include "base/random.h"

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

}  // namespace nodepool
