#include "main/daemon.h"

#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "base/log_setup.h"
#include "config/log_file.h"
#include "main/builtin_drivers.h"

namespace nodepool {
namespace {

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

}  // namespace

Daemon::Daemon(const cli::DaemonOptions& options, const log::Logger& logger)
    : metrics(OpenStatsd(loop, statsd), &prometheus),
      follower(loop, options.config_path, options.secure_path, drivers, KnownDriverSchemas()),
      config(LoadDriversAndConfig(options, drivers)),
      stack_dump(loop, std::filesystem::temp_directory_path()),
      watchdog(loop, drivers.NamesByFile()) {
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

void SetUpLogging(const cli::DaemonOptions& options) {
  if (options.logging_path) {
    Expected<log::Setup> setup = config::ReadLogFile(*options.logging_path);
    if (!setup) throw setup.error();
    log::Apply(*setup);
    return;
  }
  log::ToStdout();
  log::SetLevel("nodepool", options.is_debug ? log::Level::kDebug : log::Level::kInfo);
}

Task<> AwaitSignal(Loop& loop, Ending& ending) {
  boost::asio::signal_set signals(loop.context(), SIGINT, SIGTERM, SIGUSR1);
  int signal = co_await signals.async_wait(boost::asio::use_awaitable);
  ending.is_immediate = signal == SIGTERM;
  ending.reached.Set();
}

Task<> AwaitReload(Loop& loop, driver::ConfigFollower& follower) {
  boost::asio::signal_set signals(loop.context(), SIGHUP);
  while (true) {
    co_await signals.async_wait(boost::asio::use_awaitable);
    log::ReopenFiles();
    follower.Reload();
  }
}

}  // namespace nodepool
