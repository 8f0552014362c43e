#include "main/daemon.h"

#include <unistd.h>

#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdlib>
#include <iostream>

#include "base/journal.h"
#include "base/log_setup.h"
#include "config/log_file.h"
#include "main/builtin_drivers.h"

namespace nodepool {
namespace {

std::optional<std::string> ProfileFolder() {
  const char* folder = std::getenv("NODEPOOL_PROFILE_DIR");
  return folder != nullptr && *folder != 0 ? std::optional<std::string>(folder) : std::nullopt;
}

// Null where the environment wants none.
net::Statsd* OpenStatsd(Loop& loop, std::optional<net::Statsd>& statsd) {
  auto address = net::StatsdFromEnvironment(std::getenv("STATSD_HOST"), std::getenv("STATSD_PORT"));
  return address ? &statsd.emplace(loop, *address) : nullptr;
}

std::shared_ptr<const driver::LoadedConfig> LoadDriversAndConfig(const cli::DaemonOptions& options,
                                                                 driver::Registry& drivers) {
  AddDrivers(options.drivers_dirs, drivers);
  auto config = driver::LoadConfig(options.config_path, options.secure_path, drivers, KnownDriverSchemas());
  if (!config) throw config.error();
  return *config;
}

// By the file that -l names, else to where the daemon's output goes, with the level that
// -d asks for. Error(kInvalid) that begins with the file.
void SetUpLogging(const cli::DaemonOptions& options) {
  if (options.logging_path) {
    Expected<log::Setup> setup = config::ReadLogFile(*options.logging_path);
    if (!setup) throw setup.error();
    log::Apply(*setup);
    return;
  }
  if (!options.is_foreground) {
    log::ToFile(options.log_path);
  } else if (!log::IsJournal(STDOUT_FILENO) || !log::ToJournal()) {
    log::ToStdout();
  }
  log::SetLevel("nodepool", options.is_debug ? log::Level::kDebug : log::Level::kInfo);
}

}  // namespace

int RunDaemon(const std::string& name, const cli::DaemonOptions& options,
              const std::function<void(process::Background&)>& run) {
  process::Background background;
  bool has_log = false;
  try {
    if (!options.is_foreground) background.Enter(options.pid_path);
    SetUpLogging(options);
    has_log = true;
    run(background);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << "\n";
    if (has_log && background.is_entered()) log::Logger("nodepool").Error("{} ends: {}", name, error.what());
    return 1;
  }
}

Daemon::Daemon(const cli::DaemonOptions& options, process::Background& background, const log::Logger& logger)
    : service(loop, background),
      metrics(OpenStatsd(loop, statsd), &prometheus),
      follower(loop, options.config_path, options.secure_path, drivers, KnownDriverSchemas()),
      config(LoadDriversAndConfig(options, drivers)),
      stack_dump(loop, ProfileFolder()),
      watchdog(loop, drivers.NamesByFile()) {
  follower.TellRefusals([this](const std::string& why) { service.Refused(why); });
  for (const std::string& warning : config->common.warnings) logger.Warning("{}", warning);
  if (options.wants_repl) {
    logger.Warning(
        "--repl is ignored: there is no interactive console; SIGUSR2 and a launcher's web server tell "
        "what goes on");
  }
}

void OverrideCleanupInterval(const cli::DaemonOptions& options, Duration& interval) {
  if (!options.cleanup_interval) return;
  interval = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*options.cleanup_interval));
}

Task<> AwaitSignal(Daemon& daemon, Ending& ending) {
  boost::asio::signal_set signals(daemon.loop.context(), SIGINT, SIGTERM, SIGUSR1);
  int signal = co_await signals.async_wait(boost::asio::use_awaitable);
  daemon.service.Stopping();
  ending.is_immediate = signal == SIGTERM;
  ending.reached.Set();
}

Task<> AwaitReload(Daemon& daemon) {
  boost::asio::signal_set signals(daemon.loop.context(), SIGHUP);
  while (true) {
    co_await signals.async_wait(boost::asio::use_awaitable);
    daemon.service.Reloading();
    log::ReopenFiles();
    daemon.follower.Reload();
  }
}

}  // namespace nodepool
