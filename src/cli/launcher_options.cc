#include "cli/launcher_options.h"

#include <CLI/CLI.hpp>

namespace nodepool::cli {

void AddWebappOption(CLI::App& app, bool& is_without_webapp) {
  app.add_flag("--no-webapp", is_without_webapp, "do not start the web server");
}

std::unique_ptr<CLI::App> LauncherApp(LauncherOptions& options) {
  return DaemonApp("nodepool-launcher", "Takes node requests from ZooKeeper and supplies machines", options,
                   [&](CLI::App& app) { AddWebappOption(app, options.is_without_webapp); });
}

std::optional<int> ParseLauncherOptions(int argc, char** argv, LauncherOptions& options) {
  return ParseDaemonOptions(argc, argv, *LauncherApp(options), options);
}

}  // namespace nodepool::cli
