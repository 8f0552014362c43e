#pragma once

#include <memory>
#include <optional>
#include <string>

#include "async/blocking_pool.h"
#include "async/loop.h"
#include "base/metrics/metrics.h"
#include "base/metrics/prometheus.h"
#include "base/random.h"
#include "daemon/clock_watch.h"
#include "daemon/options.h"
#include "daemon/program.h"
#include "daemon/service.h"
#include "debug/stack_dump.h"
#include "debug/watchdog.h"
#include "driver/loading/config_follower.h"
#include "net/statsd.h"
#include "zk/server/server.h"
#include "zk/server/server_thread.h"

namespace nodepool::daemon {

// The configuration as the program puts it in force (Program::adjust).
std::shared_ptr<const driver::LoadedConfig> Adjusted(const Program& program,
                                                     std::shared_ptr<const driver::LoadedConfig> loaded);

// What every daemon needs, in the order of construction.
struct Runtime {
  // Loads drivers and configuration; logs warnings about them. Error(kInvalid): the configuration or
  // STATSD_HOST cannot be used.
  Runtime(const Program& program, const Options& options, process::Background& background);

  log::Logger logger;  // the daemon's
  Loop loop;
  Service service;  // before any member with a thread
  std::optional<net::Statsd> statsd;
  metrics::Prometheus prometheus;
  metrics::Metrics metrics;
  driver::Registry drivers;
  driver::ConfigFollower follower;
  std::shared_ptr<const driver::LoadedConfig> config;          // the first one
  const std::string own_password = zk::server::NewPassword();  // for sessions of the embedded server
  std::string client_secret;                                   // of the embedded server, once it is started
  bool needs_client_secret = false;                            // jobs can connect to that server
  std::string state_fault;  // why the embedded server cannot write its state; empty: it can, or there is none
  SystemRandom random;
  std::unique_ptr<zk::server::ServerThread> server;  // null: the program uses servers of others
  debug::StackDump stack_dump;
  debug::Watchdog watchdog;
  std::optional<debug::Watchdog> server_watchdog;
  ClockWatch clock_watch;
  BlockingPool blocking_pool;
};

}  // namespace nodepool::daemon
