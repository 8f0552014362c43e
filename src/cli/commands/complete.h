#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace nodepool::cli {

// What shells offer for values of a command line (cli/reference/completion.cc): labels, providers and
// images as the configuration has them; nodes, requests, both, and builds as they are in ZooKeeper.
std::vector<std::string> ValueKinds();
bool IsInConfig(const std::string& kind);

// One line for each value. Returns the exit status.
int CompleteFromConfig(const std::string& kind, const driver::LoadedConfig& config, std::ostream& out);
Task<int> CompleteFromTree(Context& context, std::string kind);

}  // namespace nodepool::cli
