#include "cli/launcher_options.h"

#include <CLI/CLI.hpp>

namespace nodepool::cli {

std::optional<int> ParseLauncherOptions(int argc, char** argv, LauncherOptions& options) {
  bool is_without_webapp = false;
  std::optional<int> status = ParseDaemonOptions(
      argc, argv, "nodepool-launcher", "Takes node requests from ZooKeeper and supplies machines", options,
      [&](CLI::App& app) { app.add_flag("--no-webapp", is_without_webapp, "do not start the web server"); });
  options.has_webapp = !is_without_webapp;
  return status;
}

}  // namespace nodepool::cli
