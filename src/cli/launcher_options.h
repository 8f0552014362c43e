#pragma once

#include "cli/daemon_options.h"

namespace nodepool::cli {

// The command line of nodepool-launcher (operations.md 3.1).
struct LauncherOptions : DaemonOptions {
  LauncherOptions() {
    pid_path = "/var/run/nodepool/nodepool.pid";
    log_path = "/var/log/nodepool/nodepool.log";
  }
  bool is_without_webapp = false;
};

// Declares --no-webapp, for a command line that has more.
void AddWebappOption(CLI::App& app, bool& is_without_webapp);

// As DaemonApp.
std::unique_ptr<CLI::App> LauncherApp(LauncherOptions& options);
// As ParseDaemonOptions.
std::optional<int> ParseLauncherOptions(int argc, char** argv, LauncherOptions& options);

}  // namespace nodepool::cli
