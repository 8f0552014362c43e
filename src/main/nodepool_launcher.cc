#include <csignal>
#include <cstdlib>
#include <iostream>

#include "async/task_group.h"
#include "cli/connection.h"
#include "cli/launcher_options.h"
#include "debug/stack_dump.h"
#include "launcher/launcher.h"
#include "main/daemon.h"
#include "net/http_server.h"
#include "web/launcher_site.h"
#include "web/router.h"
#include "zk/wire_client.h"

namespace nodepool {
namespace {

Task<> Start(Daemon& daemon, zk::WireClient& client, launcher::Launcher& launcher, Ending& ending) {
  std::shared_ptr<const driver::LoadedConfig> config = daemon.config;
  try {
    co_await cli::AwaitConnection(daemon.loop, client, cli::ServerNames(config->common.zookeeper));
    co_await launcher.Start();
    while (true) {
      std::shared_ptr<const driver::LoadedConfig> next = co_await daemon.follower.Next();
      cli::FollowSettings(client, config->common.zookeeper, next->common.zookeeper);
      launcher.Reconfigure(next);
      config = std::move(next);
    }
  } catch (...) {
    ending.Fail(std::current_exception());
  }
}

Task<> Serve(Daemon& daemon, const cli::LauncherOptions& options) {
  Loop& loop = daemon.loop;
  BlockingPool blocking_pool;
  zk::WireClient client(loop, daemon.random, cli::ConnectionOptions(daemon.config->common.zookeeper));
  launcher::Launcher::Options launcher_options{cli::Hostname(), cli::FullyQualifiedHostname(), {}};
  OverrideCleanupInterval(options, launcher_options.intervals.cleanup);
  launcher::Launcher launcher(loop, daemon.random, blocking_pool, daemon.metrics, client, daemon.drivers,
                              daemon.config, std::move(launcher_options));
  web::Router router(web::LauncherEndpoints(loop, launcher, daemon.prometheus));
  net::HttpServer server(loop,
                         [&router](net::HttpRequest request) { return router.Answer(std::move(request)); });
  Ending ending;
  TaskGroup tasks(loop, log::Logger("nodepool.NodePool"));
  try {
    const config::WebAppSettings& webapp = daemon.config->common.webapp;
    if (options.has_webapp) server.Listen(webapp.listen_address, webapp.port);
    tasks.Spawn("wait for a signal", AwaitSignal(loop, ending));
    tasks.Spawn("wait for a reload", AwaitReload(loop, daemon.follower));
    tasks.Spawn("run the launcher", Start(daemon, client, launcher, ending));
  } catch (...) {
    ending.Fail(std::current_exception());
  }
  co_await ending.reached.Wait();
  std::exception_ptr error = ending.error;
  if (!ending.is_immediate) {
    co_await tasks.Stop();
    co_await launcher.Stop();
  }
  co_await client.Close();
  if (!ending.is_immediate) co_await launcher.Stop();
  // Nothing is stopped in order; the closed session has freed every lock (D-65).
  if (ending.is_immediate) std::_Exit(0);
  co_await server.Stop();
  if (error) std::rethrow_exception(error);
}

int Run(const cli::LauncherOptions& options) {
  Daemon daemon(options, log::Logger("nodepool.NodePool"));
  RunToEnd(daemon.loop, Serve(daemon, options));
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
