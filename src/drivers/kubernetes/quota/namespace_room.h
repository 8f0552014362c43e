#pragma once

#include <map>
#include <string>

#include "drivers/kubernetes/api/object.h"
#include "model/resources.h"

namespace nodepool::drivers::kubernetes {

// What ResourceQuotas leave of a namespace (driver-kubernetes.md 14.3).
struct NamespaceRoom {
  Resources limits;  // absent: unlimited
  Resources others;  // what others than our own pods use of them
};

// The strictest of each resource. `own` is what our own pods there request. Quotas for some pods only, and
// limits of limits, do not count.
NamespaceRoom RoomOf(const std::map<std::string, Object>& quotas, const Resources& own);

}  // namespace nodepool::drivers::kubernetes
