#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "daemon/config_path.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
}

namespace nodepool::cli {

// What config-validate does besides checking the file.
struct Validation {
  bool is_strict = false;  // warnings are errors
  bool is_online = false;  // also checks ZooKeeper and the clouds
};

// What a command line asks for.
struct Invocation {
  std::string config_path = daemon::kDefaultConfig;
  std::optional<std::string> secure_path;
  std::optional<std::string> logging_path;
  std::vector<std::string> drivers_dirs;  // as daemon::Options
  bool is_debug = false;
  // How long to wait for a server; not set: the default of AwaitServer, and of server_command.
  std::optional<Duration> server_wait;
  // config-validate, which needs no valid configuration.
  std::optional<Validation> validation;
  // The command needs zookeeper-servers and cannot use the embedded server instead.
  bool needs_ensemble = false;
  // A command that needs only the configuration. Returns the exit status.
  std::function<int(const driver::LoadedConfig&, std::ostream&)> offline_command;
  // What `nodepool exec` is to run: the words after "--".
  std::vector<std::string> words_to_run;
  // For use by programs: failures are not reported.
  bool is_silent = false;
  // A command that asks a web server, and needs neither the configuration nor ZooKeeper. It gets
  // `server_wait`.
  std::function<Task<int>(Console&, std::optional<Duration> server_wait)> server_command;
  // Any other command.
  std::function<Task<int>(Context&)> command;
};

// Sets `invocation.command` if the arguments select `command`. `run` owns the values that the command's
// options are bound to. The invocation must outlive the parsing.
void OnCommand(CLI::App& command, Invocation& invocation, std::function<Task<int>(Context&)> run);

}  // namespace nodepool::cli
