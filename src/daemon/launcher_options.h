#pragma once

#include "daemon/options.h"

namespace nodepool::daemon {

// The command line of nodepool-launcher (operations.md 3.1).
struct LauncherOptions : Options {
  LauncherOptions() {
    pid_path = "/var/run/nodepool/nodepool.pid";
    log_path = "/var/log/nodepool/nodepool.log";
  }
  bool is_without_webapp = false;
};

// Declares --no-webapp, for a command line with further options.
void AddWebappOption(CLI::App& app, bool& is_without_webapp);

// See DaemonApp.
std::shared_ptr<CLI::App> LauncherApp(LauncherOptions& options);

}  // namespace nodepool::daemon
