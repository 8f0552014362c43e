#pragma once

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
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

// Parses the arguments (without the program's name) by the rules of operations.md 1: long options may be
// shortened to an unambiguous prefix, the tool's own options come before or after the subcommand. Help and
// version go to `out`, usage errors to `err`; in these cases, and without a subcommand, returns the exit
// status instead.
std::variant<Invocation, int> ParseArguments(std::vector<std::string> arguments, std::ostream& out,
                                             std::ostream& err);

// The index of the command among the arguments; their number if there is none.
std::size_t PlaceOfCommand(std::vector<std::string> arguments);

// `help COMMAND` as `COMMAND --help`, and `help` as `--help`; other arguments as they are.
std::vector<std::string> WithoutHelpCommand(std::vector<std::string> arguments);

// Calls `describe` with the declared command line, with all commands.
void DescribeTool(const std::function<void(const CLI::App&)>& describe);

// "90", "90s", "5m", "1.5h" or "2d": a number with an optional unit, by default seconds. Error(kInvalid) for
// negative, infinite and excessively long ones.
Expected<Duration> ParseDuration(std::string_view text);

}  // namespace nodepool::cli
