#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "async/blocking_pool.h"
#include "async/loop.h"
#include "base/random.h"
#include "driver/observer.h"

namespace nodepool::process {
class Runner;  // process/command.h
}

namespace nodepool::store {
struct Store;
}

namespace nodepool::driver {

struct RecordsEnvironment;  // driver/records_environment.h

// Why a provider cannot be used now.
struct ProviderFault {
  // For operators: what was tried, at which address, and what came of it. No secrets, and the same
  // text each time for the same cause.
  std::string cause;
  std::optional<SteadyTime> next_attempt = std::nullopt;  // none: it is not known
  // Nodes cannot be launched meanwhile, which says nothing about them (drivers.md 3): requests wait until it
  // is over, or go elsewhere. Otherwise the last known state of the cloud stays in use.
  bool is_outage = false;
};

// What every part of a driver may use of the process. Everything outlives the part.
struct DriverEnvironment {
  Loop& loop;
  Random& random;
  BlockingPool& blocking_pool;
};

// What the tools of a command may use besides.
struct ToolsEnvironment : DriverEnvironment {
  // For drivers that work with records instead of a cloud.
  store::Store& store;
};

// What a provider may use besides.
struct ProviderEnvironment : DriverEnvironment {
  // For drivers that work with records instead of a cloud, and for the cloud framework.
  const RecordsEnvironment& records;
  // To be called when capacity may have changed for a reason that the node records
  // do not show: quota was re-read, an image appeared. Waiting requests are considered
  // again. Cheap; may be called from anywhere on the loop.
  std::function<void()> capacity_changed;
  // Null when nobody wants to know.
  ProviderObserver* observer = nullptr;
  // To be called after each attempt to reach what the provider's machines come from, if nothing but
  // that attempt shows whether the provider can be used: with a fault, or with none after a success.
  // The launcher logs it once and is not ready while there is a fault. Cheap; may be called from
  // anywhere on the loop. The cloud framework calls it for its adapters.
  std::function<void(const std::optional<ProviderFault>&)> report_fault =
      [](const std::optional<ProviderFault>&) {};
  // To be called when that has changed which operators should know of although the provider can be used, such
  // as hosts that do not answer: short sentences without a full stop; none: all is well. It is shown wherever
  // the provider is. Cheap; may be called from anywhere on the loop.
  std::function<void(std::vector<std::string>)> report_notices = [](const std::vector<std::string>&) {};
  // Runs programs on this host. Null where none may be run.
  process::Runner* runner = nullptr;
};

}  // namespace nodepool::driver
