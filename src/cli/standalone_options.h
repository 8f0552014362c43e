#pragma once

#include "cli/builder_options.h"

namespace nodepool::cli {

// The command line of `nodepool standalone`, which has no background.
struct StandaloneOptions : BuilderOptions {
  StandaloneOptions() {
    pid_path.clear();
    log_path.clear();
  }
  bool is_without_webapp = false;
};

// As DaemonApp.
std::unique_ptr<CLI::App> StandaloneApp(StandaloneOptions& options);
// As ParseDaemonOptions.
std::optional<int> ParseStandaloneOptions(int argc, char** argv, StandaloneOptions& options);

}  // namespace nodepool::cli
