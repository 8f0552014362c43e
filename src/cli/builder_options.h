#pragma once

#include "cli/daemon_options.h"

namespace nodepool::cli {

// The command line of nodepool-builder (builder.md 2.1).
struct BuilderOptions : DaemonOptions {
  int build_workers = 1;
  int upload_workers = 4;
};

// Declares them, for a command line that has more.
void AddBuilderOptions(CLI::App& app, BuilderOptions& options);

// As ParseDaemonOptions.
std::optional<int> ParseBuilderOptions(int argc, char** argv, BuilderOptions& options);

}  // namespace nodepool::cli
