#pragma once

#include "async/attempt.h"

namespace nodepool::driver::cloud {

// Whether a call of the cloud ended in a way that says nothing about the call: the service is away, or does
// not want to be called now (drivers.md 3).
inline bool IsOutage(Verdict verdict) {
  return verdict == Verdict::kRetry || verdict == Verdict::kRateLimited;
}

// The same of a failure, which may also be a call that took too long.
inline bool IsPassing(const Failure& failure) {
  return IsOutage(failure.verdict()) || failure.verdict() == Verdict::kTimedOut;
}

}  // namespace nodepool::driver::cloud
