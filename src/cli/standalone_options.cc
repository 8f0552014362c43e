#include "cli/standalone_options.h"

#include <CLI/CLI.hpp>

namespace nodepool::cli {

std::unique_ptr<CLI::App> StandaloneApp(StandaloneOptions& options) {
  return DaemonApp("nodepool standalone",
                   "Runs launcher, builder (with images-dir), web server and, without zookeeper-servers, a "
                   "ZooKeeper server in one process",
                   options, [&](CLI::App& app) {
                     AddBuilderOptions(app, options);
                     app.add_flag("--no-webapp", options.is_without_webapp, "do not start the web server");
                   });
}

std::optional<int> ParseStandaloneOptions(int argc, char** argv, StandaloneOptions& options) {
  return ParseDaemonOptions(argc, argv, *StandaloneApp(options), options);
}

}  // namespace nodepool::cli
