#pragma once

#include <optional>

#include "builder/builder.h"
#include "launcher/launcher.h"
#include "main/daemon.h"

namespace nodepool {

// What a daemon does, as its command line and its first configuration have it.
struct Roles {
  std::optional<launcher::Launcher::Options> launcher;
  bool has_web_server = false;  // the launcher's
  std::optional<builder::Builder::Options> builder;
  // Where the configuration names no ZooKeeper server there is one in this process.
  bool has_zookeeper = false;
};

// The launcher's role by what the command line asks for.
launcher::Launcher::Options LauncherSetup(const cli::DaemonOptions& options);

// Fills the roles until a signal ends that, and returns when everything has stopped. Throws what
// keeps it from beginning. `logger` is that of the daemon.
void Serve(Daemon& daemon, Roles roles, const log::Logger& logger);

}  // namespace nodepool
