#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "async/blocking_pool.h"
#include "async/loop.h"
#include "async/task.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/log/logging.h"
#include "daemon/parse_arguments.h"
#include "driver/driver.h"
#include "driver/loading/load_config.h"
#include "listing/listing.h"
#include "model/component.h"
#include "store/cache/caches.h"
#include "store/store.h"

namespace nodepool::cli {

// What every command works with, also one that needs neither a configuration nor ZooKeeper.
struct Console {
  Loop& loop;
  Random& random;
  std::ostream& out;  // results; error messages go to the log
  log::Logger logger{"nodepool.cmd.nodepoolcmd"};
  std::string user = {};  // who runs the command: "alice@host"
  bool can_ask = false;   // standard input is a terminal with an operator to answer
  // The next line of standard input; empty when there is none.
  std::function<Task<std::string>()> read_line = {};
  bool is_terminal = false;  // `out` is one
  // The current width of the terminal in columns; nothing: `out` is not a terminal, or its width is unknown.
  std::function<std::optional<std::size_t>()> terminal_width = [] { return std::nullopt; };
  // Standard error, if it is a terminal, for a line that is rewritten.
  std::ostream* progress = nullptr;
  int interrupted_by = 0;    // the signal that has cancelled the command's task
  bool wants_color = false;  // the terminal supports colors, and they are not disabled
};

// Awaits a task that may end by an interruption: does not throw kCancelled.
Task<> UntilInterrupted(Task<> task);

// "1 node", "2 nodes".
inline std::string Counted(std::size_t number, std::string_view thing) {
  return fmt::format("{} {}{}", number, thing, number == 1 ? "" : "s");
}

// Where a launcher is asked. Without `web`, which old versions and the Python implementation do not announce,
// at the port of our configuration.
struct LauncherAddress {
  std::string hostname;
  std::optional<WebServer> web;
};

// What a command works with that reads records. Commands are coroutines that return the exit status: 0 if
// they did what was asked, else 1, after the reason as an error (D-66); unexpected faults are thrown.
// An interruption (Ctrl-C) cancels the command's task.
struct Context : Console {
  store::Store& store;
  // The configuration that was in force when the command began.
  std::shared_ptr<const driver::LoadedConfig> config;
  // The tools of a provider of the configuration, for this command only. Stop them before they are destroyed.
  std::function<std::unique_ptr<driver::OperatorTools>(const ProviderName&)> make_tools = {};
  // Sends GET `target` to the launcher's web server and returns the answer; throws on any failure, including
  // no answer within a second.
  std::function<Task<std::string>(LauncherAddress launcher, std::string target)> ask_launcher = {};
  // Takes large objects that are no longer needed when the process is about to end: freeing them piece by
  // piece takes a sixth of the time of a long list. Not set: they are freed.
  std::function<void(std::shared_ptr<void>)> abandon = {};
};

enum class Output { kTable, kJson };

// Prints the listing, fitted to the width of a terminal.
void Print(Context& context, const listing::Listing& listing, Output output);

// How long a command waits for a node's lock before it gives up (operations.md 5.5).
inline constexpr Duration kLockTimeout = std::chrono::seconds(5);

// Why the text cannot be a reason in a record; empty if it can.
std::string RefuseBadReason(const std::string& text);

// Releases the lock if it was acquired.
Task<> UnlockNode(std::optional<store::LockedNode>& node);

// As "200-0000000003", where the second number may be shorter.
std::optional<RequestId> ParseRequestName(std::string_view text);

// How a list is printed.
struct Page {
  Output output = Output::kTable;
  WallTime now{};  // ages are computed for this time
  listing::Colors colors = listing::Colors::kNone;
  std::optional<std::size_t> width;  // tables are fitted to it; nothing: they are not fitted
  bool is_detailed = false;          // rows that do not fit become blocks, which have all columns
};

// The terminal's width, if `context.out` is a terminal, and the current time.
Page PageOf(const Context& context, Output output);

// The listing as text, without a line break at its end. Below a fitted table, a line names the omitted
// columns (operations.md 5.3).
std::string TextOf(const listing::Listing& listing, const Page& page);

// Whether a command may change what the rows show: one alone, with `is_confirmed` (the option --yes), or
// after `y` at a terminal that has shown them. False: after a message. `verb` and `nouns` name the change and
// the rows: "delete", "nodes".
Task<bool> MayChange(Context& context, const listing::Listing& rows, bool is_confirmed, std::string verb,
                     std::string nouns);

}  // namespace nodepool::cli

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
