#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "daemon/config_path.h"

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
  std::string config_path = daemon::kDefaultConfig;
  std::optional<std::string> secure_path;
  std::optional<std::string> logging_path;
  std::vector<std::string> drivers_dirs;  // as daemon::Options
  bool is_debug = false;
  // How long to wait for a server of ZooKeeper; not set: as AwaitServer says.
  std::optional<Duration> server_wait;
  // config-validate, which needs no valid configuration.
  std::optional<Validation> validation;
  // The command needs zookeeper-servers, not the embedded server in their place.
  bool needs_ensemble = false;
  // A command that needs the configuration alone. Returns the exit status.
  std::function<int(const driver::LoadedConfig&, std::ostream&)> offline_command;
  // For programs: nothing is said when it fails.
  bool is_silent = false;
  // Any other command.
  std::function<Task<int>(Context&)> command;
};

// Sets `invocation.command` when `command` is what the arguments ask for. `run` keeps the values
// that the command's options are bound to; the invocation outlives the parsing.
void OnCommand(CLI::App& command, Invocation& invocation, std::function<Task<int>(Context&)> run);

}  // namespace nodepool::cli
