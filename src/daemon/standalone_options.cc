#include "daemon/standalone_options.h"

#include <CLI/CLI.hpp>

#include "daemon/launcher_options.h"

namespace nodepool::daemon {
namespace {

void AddCommonOptions(CLI::App& app, StandaloneOptions& options) {
  AddBuilderOptions(app, options);
  AddWebappOption(app, options.is_without_webapp);
}

}  // namespace

StandaloneOptions StandaloneDefaults() {
  StandaloneOptions options;
  options.pid_path.clear();
  options.log_path.clear();
  return options;
}

std::shared_ptr<CLI::App> StandaloneApp(StandaloneOptions& options) {
  return DaemonApp("nodepool standalone",
                   "Runs launcher, builder (with images-dir), web server and, without zookeeper-servers, a "
                   "ZooKeeper server in one process",
                   options, [&](CLI::App& app) {
                     AddCommonOptions(app, options);
                     app.add_flag("--try", options.is_trial,
                                  "show what a launcher makes of the file, with a ZooKeeper and a web server "
                                  "of its own: launch, delete, build and upload nothing")
                         ->excludes("--no-webapp");
                   });
}

StandaloneOptions NodepooldDefaults() {
  StandaloneOptions options;
  LauncherOptions launcher;
  options.pid_path = launcher.pid_path;
  options.log_path = launcher.log_path;
  return options;
}

std::shared_ptr<CLI::App> NodepooldApp(StandaloneOptions& options) {
  return DaemonApp("nodepoold", "Runs launcher, builder (with images-dir) and web server in one process",
                   options, [&](CLI::App& app) {
                     AddCommonOptions(app, options);
                     app.add_flag("--no-builder", options.is_without_builder, "build and upload no images");
                     app.add_flag(
                         "--no-launches", options.is_without_launches,
                         "launch no nodes; requests get what is ready, or wait for another launcher");
                     app.add_flag("--no-deletes", options.is_without_deletes,
                                  "delete no nodes, clean nothing up and listen to no job events; "
                                  "another launcher has to");
                   });
}

}  // namespace nodepool::daemon
