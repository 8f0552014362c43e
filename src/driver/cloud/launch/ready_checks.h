#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "async/event.h"
#include "async/task_group.h"
#include "base/log/logging.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/cloud_driver.h"
#include "driver/provider_environment.h"
#include "model/node.h"
#include "store/records.h"

namespace nodepool::driver::cloud {

// Renews the access of ready nodes before it ends, in their records. A node whose access would end too soon
// for a user, and cannot be renewed, is marked for deletion. Nodes that a client has are left alone: their
// records are the client's.
class AccessRenewal {
 public:
  // Everything outlives this.
  AccessRenewal(const ProviderEnvironment& environment, Adapter& adapter, const ProviderConfig& config)
      : environment_(environment), adapter_(adapter), config_(config) {}

  // Once over all ready nodes of the provider.
  Task<> Run();

 private:
  Task<> Check(store::StoredNode node);
  Task<> Renew(store::StoredNode node, NodeAccess access);
  Task<> MarkForDeletion(store::StoredNode node);

  const ProviderEnvironment& environment_;
  Adapter& adapter_;
  const ProviderConfig& config_;
  log::Logger logger_{"nodepool.StateMachineProvider." + config_.name.value};
  std::set<NodeId> failed_;  // whose renewal failed, and was logged
};

// Why a machine did not stand its check.
struct CheckFailure {
  std::string_view reason = {};  // for metrics: "silent", "host-keys" or "command"
  std::string why = {};          // "does not answer at 192.0.2.1 port 22: timeout connecting"
};

// Checks the machines of ready nodes from outside (drivers.md 5.18), several at a time. Changes no record.
class MachineCheck {
 public:
  // Everything outlives this. `scan` may be empty: machines can be checked by commands only.
  MachineCheck(const ProviderEnvironment& environment, const HostKeyScan& scan, log::Logger logger)
      : environment_(environment), scan_(scan), logger_(std::move(logger)) {}

  // `how`: "tcp", "ssh", a command line, or empty: as the record says. Requires an address in the record.
  // None: the machine is well, or it cannot be said, as when the command cannot be run.
  Task<std::optional<CheckFailure>> Run(NodeId id, Node record, std::string how);

 private:
  Task<std::optional<CheckFailure>> Scan(Node record, bool wants_keys);
  Task<std::optional<CheckFailure>> RunCommand(NodeId id, Node record, std::string line);

  const ProviderEnvironment& environment_;
  const HostKeyScan& scan_;
  log::Logger logger_;
  bool is_command_at_fault_ = false;  // and this was logged
  // Silent machines keep a place of the scanner for long, and launches need places.
  Gate scans_{20};
  Gate commands_{5};
};

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
