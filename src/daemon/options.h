#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log/log_setup.h"
#include "daemon/config_path.h"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's name
class App;
}

namespace nodepool::daemon {

// What the command lines of the daemons have in common (operations.md 2).
struct Options {
  std::string config_path = kDefaultConfig;
  std::optional<std::string> secure_path;
  std::optional<std::string> logging_path;
  // Of a program that logs in another way than daemons do, where neither -l nor -d is given.
  std::optional<log::Setup> usual_logging;
  bool is_foreground = false;  // false: it runs in the background
  bool is_debug = false;
  // In the background: the lock file, and the log if there is no logging configuration (operations.md 8.1).
  // Empty for a daemon that does not run in the background.
  std::string pid_path;
  std::string log_path;
  // Directories of drivers that are not part of the program (driver/loading/load_drivers.h).
  std::vector<std::string> drivers_dirs;
  bool is_version = false;
  bool wants_repl = false;  // accepted and ignored (D-61)
  // Seconds between clean-up passes; for tests, not shown in the help.
  std::optional<double> cleanup_interval;

  Duration CleanupIntervalOr(Duration otherwise) const;
};

// The command line of a daemon: `add` adds its own options to the common ones. `options`, which has the
// defaults, outlives it.
std::shared_ptr<CLI::App> DaemonApp(const std::string& name, const std::string& description, Options& options,
                                    const std::function<void(CLI::App&)>& add);

// Fills the options that DaemonApp was called with. Returns the exit status if there is nothing to run: 0
// after --help or --version, 2 after a usage error, which has been reported on stderr.
std::optional<int> ParseOptions(int argc, char** argv, CLI::App& app, Options& options);

}  // namespace nodepool::daemon
