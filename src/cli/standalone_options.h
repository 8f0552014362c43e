#pragma once

#include "cli/builder_options.h"

namespace nodepool::cli {

// The command line of `nodepool standalone`.
struct StandaloneOptions : BuilderOptions {
  bool has_webapp = true;
};

// As ParseDaemonOptions.
std::optional<int> ParseStandaloneOptions(int argc, char** argv, StandaloneOptions& options);

}  // namespace nodepool::cli
