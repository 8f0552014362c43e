#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/command.h"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 has named it
class App;
}

namespace nodepool::cli {

// What a command line asks for.
struct Invocation {
  std::string config_path = "/etc/nodepool/nodepool.yaml";
  std::optional<std::string> secure_path;
  std::optional<std::string> logging_path;
  std::vector<std::string> drivers_dirs;  // as DaemonOptions
  bool is_debug = false;
  // config-validate: checks the file and needs neither a valid one nor ZooKeeper.
  bool is_validation = false;
  // The command wants zookeeper-servers, not the embedded server in their place.
  bool needs_ensemble = false;
  // Any other command.
  std::function<Task<int>(Context&)> command;
};

// Reads the arguments (without the program's name) by the rules of operations.md 1:
// long options may be shortened to an unambiguous prefix, the tool's own options
// stand before the subcommand. Help and version go to `out`, usage errors to `err`;
// then, and without a subcommand, the exit status is returned instead.
std::variant<Invocation, int> ParseArguments(std::vector<std::string> arguments, std::ostream& out,
                                             std::ostream& err);

// Shows `describe` the command line as it is declared, with all commands.
void DescribeTool(const std::function<void(const CLI::App&)>& describe);

}  // namespace nodepool::cli
