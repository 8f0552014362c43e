#include "cli/daemon_options.h"

#include <netdb.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "cli/version.h"

namespace nodepool::cli {
namespace {

constexpr int kUsageError = 2;

int Complain(const CLI::App& app, const std::string& what) {
  std::cerr << app.help() << app.get_name() << ": error: " << what << "\n";
  return kUsageError;
}

}  // namespace

std::optional<int> ParseDaemonOptions(int argc, char** argv, const std::string& name,
                                      const std::string& description, DaemonOptions& options,
                                      const std::function<void(CLI::App&)>& add) {
  CLI::App app(description, name);
  std::string secure_path;
  bool is_foreground = false;
  bool is_version = false;
  std::string pid_file;
  app.add_option("-c", options.config_path, "configuration file")->capture_default_str();
  app.add_option("-s", secure_path, "secure file");
  app.add_flag("-f", is_foreground, "stay in the foreground");
  app.add_flag("-d", options.is_debug, "stay in the foreground and log at DEBUG level");
  app.add_option("-p", pid_file, "pid file; not used in the foreground");
  app.add_option("-l", options.logging_path, "logging configuration, YAML or INI");
  app.add_option("--drivers-dir", options.drivers_dirs,
                 "directory of drivers that are no part of the program; may be repeated")
      ->type_name("DIR")
      ->allow_extra_args(false);
  add(app);
  app.add_flag("--repl", options.wants_repl, "ignored; there is no interactive console");
  app.add_option("--cleanup-interval", options.cleanup_interval)->check(CLI::Range(0.1, 3600.0))->group("");
  app.add_flag("--version", is_version, "show the version");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return 0;
  } catch (const CLI::ParseError& error) {
    return Complain(app, error.what());
  }
  if (is_version) {
    std::cout << "Nodepool version: " << Version() << "\n";
    return 0;
  }
  if (!is_foreground && !options.is_debug && !options.is_always_foreground) {
    return Complain(app, "run it in the foreground (-f or -d), e.g. under systemd");
  }
  if (options.logging_path) options.logging_path = std::filesystem::absolute(*options.logging_path);
  if (!secure_path.empty()) options.secure_path = std::filesystem::absolute(secure_path);
  options.config_path = std::filesystem::absolute(options.config_path);
  return std::nullopt;
}

std::string WholeHostname() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

std::string Hostname() {
  std::string name = WholeHostname();
  return name.substr(0, name.find('.'));
}

std::string FullyQualifiedHostname() {
  std::string name = WholeHostname();
  addrinfo hints{};
  hints.ai_flags = AI_CANONNAME;
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0 || found == nullptr) return name;
  std::string canonical = found->ai_canonname != nullptr ? found->ai_canonname : name;
  freeaddrinfo(found);
  return canonical;
}

}  // namespace nodepool::cli
