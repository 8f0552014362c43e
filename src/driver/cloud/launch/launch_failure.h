#pragma once

#include "async/attempt.h"
#include "model/breaker.h"

namespace nodepool::driver::cloud {

// Why a creation failed, by the adapter's error, the verdict and, for refused credentials and missing images,
// by the answer of the cloud (breaker.md 1). Not for key scans, whose errors are no answers of the cloud.
FailureKind KindOf(const Failure& failure);

}  // namespace nodepool::driver::cloud
