#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/loop.h"
#include "driver/cloud/adapter.h"
#include "driver/provider_config.h"

// What the framework expects of every adapter, as checks that run against a cloud: the
// real one, or a simulation of it. `nodepool-driver-test` runs them for any driver.
namespace nodepool::driver::testing {

// What is tested, and how long each call may take. Machines are made and deleted; those that are
// already there are left alone.
struct Subject {
  Loop& loop;
  cloud::Adapter& adapter;
  // Of whom machines tell that they are; a name that no launcher uses, since a launcher
  // would take them for leaked.
  ProviderName provider;
  std::shared_ptr<const PoolConfig> pool;
  std::shared_ptr<const LabelConfig> label;
  std::optional<std::string> image_external_id;     // of the label's disk image
  Duration call_timeout = std::chrono::minutes(5);  // for each call to end
  // How often a creation, and a deletion, is told to stop half way, each time at another
  // await; 0: at every one.
  int most_cancellations = 0;
  // False: the adapter lists nothing by design.
  bool lists_machines = true;
  // Makes the cloud stop answering (true), and answer again. Null: cannot be done.
  std::function<void(bool)> stall = nullptr;
};

struct CheckResult {
  enum class Status { kPassed, kFailed, kSkipped };
  std::string check;
  Status status = Status::kPassed;
  std::string detail;  // what was wrong, or why it was skipped
};

// Runs every check; one that fails does not keep the others from running. Removes what
// it made, as far as the adapter lets it.
Task<std::vector<CheckResult>> RunContract(Subject subject);

}  // namespace nodepool::driver::testing
