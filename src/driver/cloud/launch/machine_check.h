#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "async/gate.h"
#include "base/log/logging.h"
#include "driver/cloud/cloud_provider.h"
#include "driver/provider_environment.h"
#include "model/node.h"

namespace nodepool::driver::cloud {

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

}  // namespace nodepool::driver::cloud
