#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>

#include "async/event.h"
#include "async/loop.h"
#include "base/metrics.h"
#include "base/prometheus.h"
#include "base/random.h"
#include "cli/daemon_options.h"
#include "debug/stack_dump.h"
#include "debug/watchdog.h"
#include "driver/config_follower.h"
#include "main/service.h"
#include "net/statsd.h"

namespace nodepool {

// The whole life of the daemon `name`: in the background unless `options` want the
// foreground, its log set up, `run`. Returns the exit status: what is thrown is told on
// standard error and in the log.
int RunDaemon(const std::string& name, const cli::DaemonOptions& options,
              const std::function<void(process::Background&)>& run);

// What every daemon stands on, in the order in which it is made.
struct Daemon {
  // Loads drivers and configuration; `logger` is told what a person should know of them.
  // Error(kInvalid): the configuration or STATSD_HOST cannot be used.
  Daemon(const cli::DaemonOptions& options, process::Background& background, const log::Logger& logger);

  Loop loop;
  Service service;  // before anything that has a thread
  std::optional<net::Statsd> statsd;
  metrics::Prometheus prometheus;
  metrics::Metrics metrics;
  driver::Registry drivers;
  driver::ConfigFollower follower;
  std::shared_ptr<const driver::LoadedConfig> config;  // the first one
  SystemRandom random;
  debug::StackDump stack_dump;
  debug::Watchdog watchdog;
};

// The hidden option of tests, where it is given.
void OverrideCleanupInterval(const cli::DaemonOptions& options, Duration& interval);

// How a daemon comes to its end.
struct Ending {
  Event reached;
  bool is_immediate = false;
  std::exception_ptr error;  // it could not start

  void Fail(std::exception_ptr fault) {
    error = std::move(fault);
    reached.Set();
  }
};

// SIGINT and SIGUSR1 end it gracefully, SIGTERM at once.
Task<> AwaitSignal(Daemon& daemon, Ending& ending);

// SIGHUP: read the configuration again though no file changed, and open log files anew.
Task<> AwaitReload(Daemon& daemon);

}  // namespace nodepool
