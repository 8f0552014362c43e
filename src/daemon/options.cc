#include "daemon/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "base/small_file.h"
#include "base/version.h"
#include "daemon/parse_arguments.h"

namespace nodepool::daemon {

namespace {

int Print(const CLI::App& app, std::string_view text) {
  CheckedOutput output(std::cout);
  std::cout << text;
  return output.Finish(app.get_name(), 0, std::cerr);
}

// A background process has another working directory.
std::string Absolute(const std::string& path) { return std::filesystem::absolute(ExpandHome(path)); }

}  // namespace

Duration Options::CleanupIntervalOr(Duration otherwise) const {
  if (!cleanup_interval) return otherwise;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*cleanup_interval));
}

std::shared_ptr<CLI::App> DaemonApp(const std::string& name, const std::string& description, Options& options,
                                    const std::function<void(CLI::App&)>& add) {
  auto app = std::make_shared<CLI::App>(description, name);
  app->formatter(HelpFormat());
  app->add_option("-c", options.config_path, "configuration file")
      ->type_name("FILE")
      ->envname(kConfigVariable)
      ->capture_default_str();
  app->add_option("-s", options.secure_path, "secure file, merged into the configuration")->type_name("FILE");
  app->add_flag("-f", options.is_foreground, "stay in the foreground");
  app->add_flag("-d,--debug", options.is_debug, "stay in the foreground and log at DEBUG level");
  app->add_option("-p", options.pid_path, "pid file; not used in the foreground")
      ->type_name("FILE")
      ->capture_default_str();
  app->add_option("-l", options.logging_path, "logging configuration, YAML or INI")->type_name("FILE");
  app->add_option("--drivers-dir", options.drivers_dirs,
                  "directory of drivers that are no part of the program; may be repeated")
      ->type_name("DIR")
      ->allow_extra_args(false);
  add(*app);
  app->add_flag("--repl", options.wants_repl, "ignored; there is no interactive console");
  app->add_option("--cleanup-interval", options.cleanup_interval)->check(CLI::Range(0.1, 3600.0))->group("");
  app->add_flag("--version", options.is_version, "show the version");
  return app;
}

std::optional<int> ParseOptions(int argc, char** argv, CLI::App& app, Options& options) {
  bool has_background = !options.log_path.empty();
  try {
    ParseArguments(app, {argv + std::min(argc, 1), argv + argc});
  } catch (const CLI::CallForHelp&) {
    return Print(app, app.help());
  } catch (const UsageError& error) {
    std::cerr << error.what() << '\n';
    return kUsageError;
  }
  if (options.is_version) return Print(app, fmt::format("Nodepool version: {}\n", Version()));
  options.is_foreground = options.is_foreground || options.is_debug || !has_background;
  for (std::optional<std::string>* path : {&options.secure_path, &options.logging_path}) {
    if (*path) *path = Absolute(**path);
  }
  options.config_path = Absolute(options.config_path);
  if (!options.pid_path.empty()) options.pid_path = Absolute(options.pid_path);
  for (std::string& directory : options.drivers_dirs) directory = Absolute(directory);
  return std::nullopt;
}

void AddWebappOption(CLI::App& app, bool& is_without_webapp) {
  app.add_flag("--no-webapp", is_without_webapp, "do not start the web server");
}

std::shared_ptr<CLI::App> LauncherApp(LauncherOptions& options) {
  return DaemonApp("nodepool-launcher", "Takes node requests from ZooKeeper and supplies machines", options,
                   [&](CLI::App& app) { AddWebappOption(app, options.is_without_webapp); });
}

void AddBuilderOptions(CLI::App& app, BuilderOptions& options) {
  constexpr int kMaxWorkers = 1000;
  app.add_option("--build-workers", options.build_workers, "builds at a time")
      ->check(CLI::Range(0, kMaxWorkers))
      ->capture_default_str();
  app.add_option("--upload-workers", options.upload_workers, "uploads at a time")
      ->check(CLI::Range(0, kMaxWorkers))
      ->capture_default_str();
  app.add_flag(
      "--finish-builds", options.finishes_builds,
      "at SIGINT or SIGUSR1, wait for the builds and uploads that run; a second signal ends at once");
}

std::shared_ptr<CLI::App> BuilderApp(BuilderOptions& options) {
  return DaemonApp("nodepool-builder", "Builds disk images and uploads them to the providers that use them",
                   options, [&](CLI::App& app) { AddBuilderOptions(app, options); });
}

std::shared_ptr<CLI::App> RunnersApp(RunnersOptions& options) {
  return DaemonApp("nodepool-runners", "Runs jobs of GitHub Actions on nodes, a node for each job", options,
                   [](CLI::App&) {});
}

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
