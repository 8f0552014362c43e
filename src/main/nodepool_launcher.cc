#include <csignal>

#include "async/task_group.h"
#include "cli/connection.h"
#include "cli/host_name.h"
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
    std::string servers = cli::ServerNames(config->common.zookeeper);
    daemon.service.Started("Waiting for ZooKeeper at " + servers);
    co_await cli::AwaitConnection(daemon.loop, client, servers);
    co_await cli::CheckPlaceOfRecords(daemon.loop, daemon.random, config->common.zookeeper);
    co_await launcher.Start();
    daemon.service.Serving(config->providers.size());
    while (true) {
      std::shared_ptr<const driver::LoadedConfig> next = co_await daemon.follower.Next();
      cli::FollowSettings(client, config->common.zookeeper, next->common.zookeeper);
      launcher.Reconfigure(next);
      config = std::move(next);
      daemon.service.Serving(config->providers.size());
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
    if (!options.is_without_webapp) server.Listen(webapp.listen_address, webapp.port);
    tasks.Spawn("wait for a signal", AwaitSignal(daemon, ending));
    tasks.Spawn("wait for a reload", AwaitReload(daemon));
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
  if (ending.is_immediate) daemon.service.EndAtOnce();
  co_await server.Stop();
  if (error) std::rethrow_exception(error);
}

void Run(const cli::LauncherOptions& options, process::Background& background) {
  Daemon daemon(options, background, log::Logger("nodepool.NodePool"));
  RunToEnd(daemon.loop, Serve(daemon, options));
}

}  // namespace
}  // namespace nodepool

int main(int argc, char** argv) {
  using namespace nodepool;
  std::signal(SIGPIPE, SIG_IGN);
  debug::StackDump::BlockSignal();
  cli::LauncherOptions options;
  if (auto status = cli::ParseLauncherOptions(argc, argv, options)) return *status;
  return RunDaemon("nodepool-launcher", options,
                   [&](process::Background& background) { Run(options, background); });
}
