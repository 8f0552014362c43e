#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log/log_setup.h"
#include "daemon/parse_arguments.h"

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

// The command line of nodepool-launcher (operations.md 3.1).
struct LauncherOptions : Options {
  LauncherOptions() {
    pid_path = "/var/run/nodepool/nodepool.pid";
    log_path = "/var/log/nodepool/nodepool.log";
  }
  bool is_without_webapp = false;
};

// Declares --no-webapp, for a command line with further options.
void AddWebappOption(CLI::App& app, bool& is_without_webapp);

// See DaemonApp.
std::shared_ptr<CLI::App> LauncherApp(LauncherOptions& options);

// The command line of nodepool-builder (builder.md 2.1).
struct BuilderOptions : Options {
  BuilderOptions() {
    pid_path = "/var/run/nodepool/nodepool-builder.pid";
    log_path = "/var/log/nodepool/nodepool-builder.log";
  }
  int build_workers = 1;
  int upload_workers = 4;
  bool finishes_builds = false;  // on stop
};

// Declares them, for a command line with further options.
void AddBuilderOptions(CLI::App& app, BuilderOptions& options);

// See DaemonApp.
std::shared_ptr<CLI::App> BuilderApp(BuilderOptions& options);

// The command line of nodepool-runners (runners.md 6).
struct RunnersOptions : Options {
  RunnersOptions() {
    pid_path = "/var/run/nodepool/nodepool-runners.pid";
    log_path = "/var/log/nodepool/nodepool-runners.log";
  }
};

// See DaemonApp.
std::shared_ptr<CLI::App> RunnersApp(RunnersOptions& options);

// The command line of a program that is launcher and builder in one process.
struct StandaloneOptions : BuilderOptions {
  bool is_without_webapp = false;
  bool is_without_builder = false;
  // What the launcher leaves to other launchers (launcher::Duties).
  bool is_without_launches = false;
  bool is_without_deletes = false;
  bool is_trial = false;  // main/nodepool.h; of `nodepool standalone` only
};

// Of `nodepool standalone`, which always runs in the foreground.
StandaloneOptions StandaloneDefaults();
// See DaemonApp.
std::shared_ptr<CLI::App> StandaloneApp(StandaloneOptions& options);

// Of `nodepoold`, the daemon of the releases until 2017 (operations.md 13.1).
StandaloneOptions NodepooldDefaults();
// See DaemonApp.
std::shared_ptr<CLI::App> NodepooldApp(StandaloneOptions& options);

}  // namespace nodepool::daemon
