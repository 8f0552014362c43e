#pragma once

#include <memory>
#include <optional>
#include <string>

#include "async/blocking_pool.h"
#include "async/event.h"
#include "async/loop.h"
#include "async/task.h"
#include "base/ids.h"
#include "base/log/logging.h"
#include "base/metrics.h"
#include "config/config.h"
#include "daemon/options.h"
#include "daemon/program.h"
#include "debug/stack_dump.h"
#include "debug/watchdog.h"
#include "driver/loading/config_follower.h"
#include "net/service_manager.h"
#include "net/statsd.h"
#include "process/pid_file.h"
#include "zk/server/server.h"

namespace nodepool::daemon {

// Logs jumps of the system's clock, with which the ages of records are computed. No wait depends on it.
class ClockWatch {
 public:
  // `loop` outlives this.
  explicit ClockWatch(Loop& loop);
  ~ClockWatch() { loop_.clock().CancelTimer(timer_); }
  ClockWatch(const ClockWatch&) = delete;
  ClockWatch& operator=(const ClockWatch&) = delete;

 private:
  void Check();
  void Wait();
  // What the clock is ahead of the time since some moment, which changes only when it is set.
  Duration Offset() const { return loop_.Now().time_since_epoch() - loop_.SteadyNow().time_since_epoch(); }

  Loop& loop_;
  log::Logger logger_{"nodepool.clock"};
  Duration offset_;
  Clock::TimerId timer_ = 0;
};

// Reports the state of a daemon to the outside: to the terminal that started it, and to the
// service manager, if there is one.
class Service {
 public:
  // Create it while the process has one thread, since it removes what concerns only this process from the
  // environment. Both outlive this.
  Service(Loop& loop, process::Background& background);
  ~Service();

  // The daemon has started as far as can be known at once; `status` says what it waits for.
  void Started(const std::string& status);
  // The daemon is serving, with this number of providers.
  void Serving(std::size_t providers);

  // The configuration is being read again; Serving() or Refused() follows.
  void Reloading();
  // The changed configuration cannot be used.
  void Refused(const std::string& why);

  void Stopping();
  // Ends the process at once, as std::quick_exit does; call after the session is closed.
  [[noreturn]] void EndAtOnce();

 private:
  void Feed();

  Loop& loop_;
  process::Background& background_;
  net::ServiceManager manager_;
  // The loop feeds the watchdog, so that a stuck loop is detected.
  std::optional<Duration> watchdog_;
  Clock::TimerId timer_ = 0;
  bool is_serving_ = false;
};

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

// How a daemon ends.
struct Ending {
  Event reached;
  bool is_immediate = false;
  std::optional<Failure> failure;  // why it could not start
};

// Call while the process has one thread.
void PrepareSignals();

// SIGINT and SIGUSR1 end the daemon gracefully, SIGTERM at once.
Task<> AwaitSignal(Runtime& runtime, Ending& ending);

// SIGHUP: reads the configuration again even if no file has changed, and reopens log files.
Task<> AwaitReload(Runtime& runtime);

// The embedded server's options according to the configuration.
zk::server::ServerOptions EmbeddedServerOptions(const config::EmbeddedZooKeeper& embedded);

// The same for the server of a daemon: it knows the daemon's own sessions, and keeps `runtime.state_fault` up
// to date from any thread. `runtime` outlives it.
zk::server::ServerOptions OwnServerOptions(const config::EmbeddedZooKeeper& embedded, Runtime& runtime);

// Creates the directory for its state if there is none. Error(kInvalid).
void MakeStateDirectory(const config::EmbeddedZooKeeper& embedded);

}  // namespace nodepool::daemon
