#include "daemon/launcher_options.h"

#include <CLI/CLI.hpp>

namespace nodepool::daemon {

void AddWebappOption(CLI::App& app, bool& is_without_webapp) {
  app.add_flag("--no-webapp", is_without_webapp, "do not start the web server");
}

std::shared_ptr<CLI::App> LauncherApp(LauncherOptions& options) {
  return DaemonApp("nodepool-launcher", "Takes node requests from ZooKeeper and supplies machines", options,
                   [&](CLI::App& app) { AddWebappOption(app, options.is_without_webapp); });
}

}  // namespace nodepool::daemon
