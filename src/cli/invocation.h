#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 has named it
class App;
}

namespace nodepool::cli {

// What config-validate is to do besides checking the file.
struct Validation {
  bool is_strict = false;  // warnings are errors
  bool is_online = false;  // ZooKeeper and the clouds are asked, too
};

// What a command line asks for.
struct Invocation {
  std::string config_path = "/etc/nodepool/nodepool.yaml";
  std::optional<std::string> secure_path;
  std::optional<std::string> logging_path;
  std::vector<std::string> drivers_dirs;  // as daemon::Options
  bool is_debug = false;
  // config-validate, which needs no valid configuration.
  std::optional<Validation> validation;
  // The command needs zookeeper-servers, not the embedded server in their place.
  bool needs_ensemble = false;
  // Any other command.
  std::function<Task<int>(Context&)> command;
};

// Sets `invocation.command` when `command` is what the arguments ask for. `run` keeps the values
// that the command's options are bound to; the invocation outlives the parsing.
void OnCommand(CLI::App& command, Invocation& invocation, std::function<Task<int>(Context&)> run);

}  // namespace nodepool::cli
