#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "async/task_group.h"
#include "base/log/logging.h"
#include "driver/cloud/cloud_provider.h"
#include "driver/cloud/launch/machine_check.h"
#include "driver/provider_environment.h"
#include "store/records.h"

namespace nodepool::driver::cloud {

// Checks ready nodes again, at the interval of their pool and as it says (drivers.md 5.18). A node that fails
// three times in a row is marked for deletion, so that nobody gets it. No lock is held meanwhile: a request
// may take the node as if nobody checked it.
//
// Where several nodes of the provider fail and they are more than half of those that were due, none is
// deleted: what fails is rather the way to them.
class ReadyChecks {
 public:
  // Everything outlives this. `scan` may be empty: only commands check nodes then.
  ReadyChecks(const ProviderEnvironment& environment, const ProviderConfig& config, const HostKeyScan& scan)
      : environment_(environment),
        config_(config),
        check_(environment, scan, logger_),
        checks_(environment.loop, logger_) {}

  // Until cancelled; ends at once if no pool wants its nodes checked.
  Task<> Run();
  // Call when Run() has ended, before destruction.
  Task<> Stop() { return checks_.Stop(); }

 private:
  Task<> Round();
  std::set<NodeId> TakeDue();
  const store::StoredNode* FindReady(const NodeId& id) const;
  // Fills `failing_`.
  Task<> CheckAll(std::set<NodeId> nodes);
  Task<> Check(NodeId id, Node record, std::string how);
  Task<> Replace(NodeId id, CheckFailure failure);

  const ProviderEnvironment& environment_;
  const ProviderConfig& config_;
  log::Logger logger_{"nodepool.StateMachineProvider." + config_.name.value};
  std::map<NodeId, SteadyTime> last_checks_;
  std::map<NodeId, CheckFailure> failing_;  // in the last check
  bool is_way_doubted_ = false;             // and this was logged
  MachineCheck check_;
  TaskGroup checks_;
};

}  // namespace nodepool::driver::cloud
