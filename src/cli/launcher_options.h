#pragma once

#include "cli/daemon_options.h"

namespace nodepool::cli {

// The command line of nodepool-launcher (operations.md 3.1).
struct LauncherOptions : DaemonOptions {
  bool has_webapp = true;
};

// As ParseDaemonOptions.
std::optional<int> ParseLauncherOptions(int argc, char** argv, LauncherOptions& options);

}  // namespace nodepool::cli
