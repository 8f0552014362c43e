#pragma once

#include "daemon/options.h"

namespace nodepool::daemon {

// The command line of nodepool-builder (builder.md 2.1).
struct BuilderOptions : Options {
  BuilderOptions() {
    pid_path = "/var/run/nodepool/nodepool-builder.pid";
    log_path = "/var/log/nodepool/nodepool-builder.log";
  }
  int build_workers = 1;
  int upload_workers = 4;
  bool finishes_builds = false;  // on stop
};

// Declares them, for a command line with further options.
void AddBuilderOptions(CLI::App& app, BuilderOptions& options);

// See DaemonApp.
std::shared_ptr<CLI::App> BuilderApp(BuilderOptions& options);

}  // namespace nodepool::daemon
