#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "async/blocking_pool.h"
#include "drivers/kubernetes/api/object.h"

namespace nodepool::drivers::kubernetes {

// An event of a watch (driver-kubernetes.md 4.4).
struct WatchEvent {
  enum class Kind {
    kChanged,   // the object is new or another now
    kDeleted,   // the object as it was last
    kBookmark,  // the object has no more than a version
    kError,     // the watch ends; no object
  };
  Kind kind = Kind::kError;
  Object object;
  std::string version;  // of the cluster, by the object
};

// Reads a line of a watch; none: it is no event. A long one is read in the pool.
Task<std::optional<WatchEvent>> ReadEvent(BlockingPool& pool, std::string line);

}  // namespace nodepool::drivers::kubernetes
