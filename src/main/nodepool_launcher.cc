#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "async/task_group.h"
#include "base/prometheus.h"
#include "base/random.h"
#include "cli/connection.h"
#include "cli/launcher_options.h"
#include "debug/stack_dump.h"
#include "debug/watchdog.h"
#include "driver/config_follower.h"
#include "launcher/launcher.h"
#include "main/builtin_drivers.h"
#include "main/daemon.h"
#include "net/http_server.h"
#include "net/statsd.h"
#include "web/launcher_site.h"
#include "web/router.h"
#include "zk/wire_client.h"

namespace nodepool {
namespace {

struct Running {
  Loop& loop;
  zk::WireClient& client;
  driver::ConfigFollower& follower;
  launcher::Launcher& launcher;
};

Task<> Start(Running running, std::shared_ptr<const driver::LoadedConfig> config, Ending& ending) {
  try {
    co_await cli::AwaitConnection(running.loop, running.client, cli::ServerNames(config->common.zookeeper));
    co_await running.launcher.Start();
    while (true) {
      std::shared_ptr<const driver::LoadedConfig> next = co_await running.follower.Next();
      cli::FollowSettings(running.client, config->common.zookeeper, next->common.zookeeper);
      running.launcher.Reconfigure(next);
      config = std::move(next);
    }
  } catch (...) {
    ending.Fail(std::current_exception());
  }
}

// What the program consists of, from the bottom up.
struct Program {
  Loop& loop;
  Random& random;
  driver::Registry& drivers;
  zk::WireClient& client;
  driver::ConfigFollower& follower;
  metrics::Metrics& metrics;
  metrics::Prometheus& prometheus;
  std::shared_ptr<const driver::LoadedConfig> config;
  launcher::Intervals intervals;
  bool has_webapp;
};

Task<> Serve(Program& program) {
  Loop& loop = program.loop;
  BlockingPool blocking_pool;
  launcher::Launcher::Options options{cli::Hostname(), cli::FullyQualifiedHostname(), program.intervals};
  launcher::Launcher launcher(loop, program.random, blocking_pool, program.metrics, program.client,
                              program.drivers, program.config, std::move(options));
  web::Router router(web::LauncherEndpoints(loop, launcher, program.prometheus));
  net::HttpServer server(loop,
                         [&router](net::HttpRequest request) { return router.Answer(std::move(request)); });
  Ending ending;
  TaskGroup tasks(loop, log::Logger("nodepool.NodePool"));
  Running running{loop, program.client, program.follower, launcher};
  try {
    const config::WebAppSettings& webapp = program.config->common.webapp;
    if (program.has_webapp) server.Listen(webapp.listen_address, webapp.port);
    tasks.Spawn("wait for a signal", AwaitSignal(loop, ending));
    tasks.Spawn("wait for a reload", AwaitReload(loop, program.follower));
    tasks.Spawn("run the launcher", Start(running, program.config, ending));
  } catch (...) {
    ending.Fail(std::current_exception());
  }
  co_await ending.reached.Wait();
  std::exception_ptr error = ending.error;
  if (!ending.is_immediate) {
    co_await tasks.Stop();
    co_await launcher.Stop();
  }
  co_await program.client.Close();
  if (!ending.is_immediate) co_await launcher.Stop();
  // Nothing is stopped in order; the closed session has freed every lock (D-65).
  if (ending.is_immediate) std::_Exit(0);
  co_await server.Stop();
  if (error) std::rethrow_exception(error);
}

int Run(const cli::LauncherOptions& options) {
  Loop loop;
  std::optional<net::Statsd> statsd;
  if (auto address = net::StatsdFromEnvironment(std::getenv("STATSD_HOST"), std::getenv("STATSD_PORT"))) {
    statsd.emplace(loop, *address);
  }
  metrics::Prometheus prometheus;
  metrics::Metrics metrics(statsd ? &*statsd : nullptr, &prometheus);
  driver::Registry drivers;
  AddDrivers(options.drivers_dirs, drivers);
  driver::ConfigFollower follower(loop, options.config_path, options.secure_path, drivers,
                                  KnownDriverSchemas());
  auto config = driver::LoadConfig(options.config_path, options.secure_path, drivers, KnownDriverSchemas());
  if (!config) throw config.error();
  log::Logger logger("nodepool.NodePool");
  for (const std::string& warning : (*config)->common.warnings) logger.Warning("{}", warning);
  if (options.wants_repl) {
    logger.Warning("--repl is ignored: there is no interactive console, see the web endpoints and SIGUSR2");
  }
  SystemRandom random;
  debug::StackDump stack_dump(loop, std::filesystem::temp_directory_path());
  debug::Watchdog watchdog(loop, drivers.NamesByFile());
  zk::WireClient client(loop, random, cli::ConnectionOptions((*config)->common.zookeeper));
  launcher::Intervals intervals;
  if (options.cleanup_interval) {
    intervals.cleanup =
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*options.cleanup_interval));
  }
  Program program{loop,    random,     drivers, client,    follower,
                  metrics, prometheus, *config, intervals, options.has_webapp};
  RunToEnd(loop, Serve(program));
  return 0;
}

}  // namespace
}  // namespace nodepool

int main(int argc, char** argv) {
  using namespace nodepool;
  std::signal(SIGPIPE, SIG_IGN);
  debug::StackDump::BlockSignal();
  cli::LauncherOptions options;
  if (auto status = cli::ParseLauncherOptions(argc, argv, options)) return *status;
  try {
    SetUpLogging(options);
    return Run(options);
  } catch (const std::exception& error) {
    std::cerr << "nodepool-launcher: " << error.what() << "\n";
    return 1;
  }
}
