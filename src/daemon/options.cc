#include "daemon/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "base/checked_output.h"
#include "base/version.h"
#include "daemon/help_format.h"
#include "daemon/home.h"
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

}  // namespace nodepool::daemon
