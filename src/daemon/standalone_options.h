#pragma once

#include "daemon/builder_options.h"

namespace nodepool::daemon {

// The command line of a program that is launcher and builder in one process.
struct StandaloneOptions : BuilderOptions {
  bool is_without_webapp = false;
  bool is_without_builder = false;
  // What the launcher leaves to other launchers (launcher::Duties).
  bool is_without_launches = false;
  bool is_without_deletes = false;
  bool is_trial = false;  // main/try_run.h; of `nodepool standalone` only
};

// Of `nodepool standalone`, which always runs in the foreground.
StandaloneOptions StandaloneDefaults();
// See DaemonApp.
std::shared_ptr<CLI::App> StandaloneApp(StandaloneOptions& options);

// Of `nodepoold`, the daemon of the releases until 2017 (operations.md 13.1).
StandaloneOptions NodepooldDefaults();
// See DaemonApp.
std::shared_ptr<CLI::App> NodepooldApp(StandaloneOptions& options);

}  // namespace nodepool::daemon
