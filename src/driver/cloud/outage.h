#pragma once

#include "base/error.h"

namespace nodepool::driver::cloud {

// Whether a call of the cloud ended in a way that says nothing about the call: the service is away, or does
// not want to be called now (drivers.md 3).
inline bool IsOutage(Verdict verdict) {
  return verdict == Verdict::kRetry || verdict == Verdict::kRateLimited;
}

}  // namespace nodepool::driver::cloud
