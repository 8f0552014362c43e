#include "async/backoff.h"

#include <algorithm>

namespace nodepool {

Duration Backoff::Next() {
  double spread = random_.Between(1 - settings_.jitter, 1 + settings_.jitter);
  auto pause = std::chrono::duration_cast<Duration>(base_ * spread);
  auto next = std::chrono::duration_cast<Duration>(base_ * settings_.factor);
  base_ = std::min(next, settings_.max);
  return std::min(pause, settings_.max);
}

}  // namespace nodepool
