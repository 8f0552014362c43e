#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace nodepool::cli {

// The kinds of values that shells complete (cli/reference/completion.cc): labels, providers and images from
// the configuration; nodes, requests, both, and builds from ZooKeeper.
std::vector<std::string> ValueKinds();
bool IsInConfig(const std::string& kind);

// Prints one line for each value. Returns the exit status.
int CompleteFromConfig(const std::string& kind, const driver::LoadedConfig& config, std::ostream& out);
Task<int> CompleteFromTree(Context& context, std::string kind);

}  // namespace nodepool::cli
