#include "cli/launcher_options.h"

#include <CLI/CLI.hpp>

namespace nodepool::cli {

std::unique_ptr<CLI::App> LauncherApp(LauncherOptions& options) {
  return DaemonApp("nodepool-launcher", "Takes node requests from ZooKeeper and supplies machines", options,
                   [&](CLI::App& app) {
                     app.add_flag("--no-webapp", options.is_without_webapp, "do not start the web server");
                   });
}

std::optional<int> ParseLauncherOptions(int argc, char** argv, LauncherOptions& options) {
  return ParseDaemonOptions(argc, argv, *LauncherApp(options), options);
}

}  // namespace nodepool::cli
