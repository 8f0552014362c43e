#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 has named it
class App;
}

namespace nodepool::daemon {

// What the command lines of the daemons have in common (operations.md 2).
struct Options {
  std::string config_path = "/etc/nodepool/nodepool.yaml";
  std::optional<std::string> secure_path;
  std::optional<std::string> logging_path;
  bool is_foreground = false;  // or it goes into the background
  bool is_debug = false;
  // Of the background: the lock, and the log without a logging file (operations.md 8.1).
  // Empty for a daemon that has no background.
  std::string pid_path;
  std::string log_path;
  // Where drivers are that are no part of the program (driver/loading/load_drivers.h).
  std::vector<std::string> drivers_dirs;
  bool is_version = false;
  bool wants_repl = false;  // accepted and ignored (D-61)
  // Seconds between clean-up passes; for tests, not shown in the help.
  std::optional<double> cleanup_interval;

  Duration CleanupIntervalOr(Duration otherwise) const;
};

// The command line of a daemon: `add` adds what is special to what all have. `options`,
// which holds the defaults, outlives it.
std::shared_ptr<CLI::App> DaemonApp(const std::string& name, const std::string& description, Options& options,
                                    const std::function<void(CLI::App&)>& add);

// Fills what DaemonApp was made with. Returns the exit status when there is
// nothing to run: 0 after --help or --version, 2 after a usage error, which has been
// reported on stderr.
std::optional<int> ParseOptions(int argc, char** argv, CLI::App& app, Options& options);

}  // namespace nodepool::daemon
