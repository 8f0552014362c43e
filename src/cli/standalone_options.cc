#include "cli/standalone_options.h"

#include <CLI/CLI.hpp>

namespace nodepool::cli {

std::optional<int> ParseStandaloneOptions(int argc, char** argv, StandaloneOptions& options) {
  bool is_without_webapp = false;
  options.is_always_foreground = true;
  auto add = [&](CLI::App& app) {
    AddBuilderOptions(app, options);
    app.add_flag("--no-webapp", is_without_webapp, "do not start the web server");
  };
  std::optional<int> status =
      ParseDaemonOptions(argc, argv, "nodepool standalone",
                         "Runs launcher, builder (with images-dir), web server and, without "
                         "zookeeper-servers, a ZooKeeper server in one process",
                         options, add);
  options.has_webapp = !is_without_webapp;
  return status;
}

}  // namespace nodepool::cli
