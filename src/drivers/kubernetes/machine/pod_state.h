#pragma once

#include <string>

#include "base/clock.h"
#include "drivers/kubernetes/api/object.h"

namespace nodepool::drivers::kubernetes {

// What a pod's state means for its launch (driver-kubernetes.md 9).
struct PodState {
  enum class Kind { kRuns, kWaits, kFailed };
  Kind kind = Kind::kWaits;
  std::string text;  // the cluster's own words, for operators
  // A pod that waits: how long it may stay in this state, or Duration::max(); states of the same cause count
  // together.
  Duration limit = Duration::max();
  std::string cause;
  bool lacks_capacity = false;  // no node of the cluster has room for it
};

PodState StateOf(const Object& pod);

}  // namespace nodepool::drivers::kubernetes
