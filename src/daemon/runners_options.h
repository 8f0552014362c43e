#pragma once

#include "daemon/options.h"

namespace nodepool::daemon {

// The command line of nodepool-runners (runners.md 6).
struct RunnersOptions : Options {
  RunnersOptions() {
    pid_path = "/var/run/nodepool/nodepool-runners.pid";
    log_path = "/var/log/nodepool/nodepool-runners.log";
  }
};

// See DaemonApp.
std::shared_ptr<CLI::App> RunnersApp(RunnersOptions& options);

}  // namespace nodepool::daemon
