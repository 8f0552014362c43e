#pragma once

#include <functional>

#include "async/blocking_pool.h"
#include "async/loop.h"
#include "base/random.h"
#include "driver/observer.h"

namespace nodepool::driver {

struct RecordsEnvironment;  // driver/records_environment.h

// What a driver may use of the process. Everything outlives the provider.
struct ProviderEnvironment {
  Loop& loop;
  Random& random;
  BlockingPool& blocking_pool;
  // For drivers that work with records instead of a cloud, and for the cloud framework.
  const RecordsEnvironment& records;
  // To be called when capacity may have changed for a reason that the node records
  // do not show: quota was re-read, an image appeared. Waiting requests are considered
  // again. Cheap; may be called from anywhere on the loop.
  std::function<void()> capacity_changed;
  // Null when nobody wants to know.
  ProviderObserver* observer = nullptr;
  // The provider lives for a few calls, in the command line: it offers nothing to other
  // processes, so it opens no port.
  bool is_for_one_command = false;
};

}  // namespace nodepool::driver
