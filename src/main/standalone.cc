#include "main/standalone.h"

#include <csignal>
#include <filesystem>
#include <optional>

#include "async/task_group.h"
#include "base/error.h"
#include "builder/directory_files.h"
#include "cli/connection.h"
#include "cli/embedded_server.h"
#include "cli/host_name.h"
#include "cli/standalone_options.h"
#include "debug/stack_dump.h"
#include "launcher/launcher.h"
#include "main/builder_setup.h"
#include "main/daemon.h"
#include "net/http_server.h"
#include "process/system_runner.h"
#include "web/launcher_site.h"
#include "web/router.h"
#include "zk/server/server.h"
#include "zk/wire_client.h"

namespace nodepool {
namespace {

const log::Logger& Log() {
  static const log::Logger logger("nodepool.NodePool");
  return logger;
}

struct Parts {
  zk::WireClient& client;
  launcher::Launcher& launcher;
  builder::Builder* builder;  // null without images-dir
};

void Follow(Parts& parts, const config::ZooKeeperSettings& before, const config::ZooKeeperSettings& after) {
  if (before.servers.empty() != after.servers.empty() || before.embedded != after.embedded) {
    Log().Warning("Another ZooKeeper server is used from the next start on");
  } else {
    cli::FollowSettings(parts.client, cli::OrEmbedded(before), cli::OrEmbedded(after));
  }
}

Task<> Run(Daemon& daemon, Parts& parts, Ending& ending) {
  std::shared_ptr<const driver::LoadedConfig> config = daemon.config;
  try {
    std::string servers = cli::ServerNames(cli::OrEmbedded(config->common.zookeeper));
    daemon.service.Started("Waiting for ZooKeeper at " + servers);
    co_await cli::AwaitConnection(daemon.loop, parts.client, servers);
    co_await cli::CheckPlaceOfRecords(daemon.loop, daemon.random, config->common.zookeeper);
    co_await parts.launcher.Start();
    if (parts.builder != nullptr) co_await parts.builder->Start();
    daemon.service.Serving(config->providers.size());
    while (true) {
      std::shared_ptr<const driver::LoadedConfig> next = co_await daemon.follower.Next();
      Follow(parts, config->common.zookeeper, next->common.zookeeper);
      parts.launcher.Reconfigure(next);
      if (parts.builder != nullptr) parts.builder->Reconfigure(next);
      config = std::move(next);
      daemon.service.Serving(config->providers.size());
    }
  } catch (...) {
    ending.Fail(std::current_exception());
  }
}

Task<> StopParts(Parts& parts) {
  co_await parts.launcher.Stop();
  if (parts.builder != nullptr) co_await parts.builder->Stop();
}

// Until a signal, with a ZooKeeper that can be reached.
Task<> Serve(Daemon& daemon, const cli::StandaloneOptions& options, BlockingPool& blocking_pool) {
  Loop& loop = daemon.loop;
  const config::Config& config = daemon.config->common;
  zk::WireClient client(loop, daemon.random, cli::ConnectionOptions(cli::OrEmbedded(config.zookeeper)));
  std::optional<builder::Builder::Options> builder_options;
  if (config.images_dir) builder_options = BuilderSetup(options, *config.images_dir, daemon.random);
  launcher::Launcher::Options launcher_options{cli::Hostname(), cli::FullyQualifiedHostname(), {}};
  OverrideCleanupInterval(options, launcher_options.intervals.cleanup);
  launcher::Launcher launcher(loop, daemon.random, blocking_pool, daemon.metrics, client, daemon.drivers,
                              daemon.config, std::move(launcher_options));
  process::SystemRunner runner(loop);
  builder::DirectoryFiles files(blocking_pool);
  std::optional<builder::Builder> builder;
  if (builder_options) {
    builder.emplace(loop, daemon.random, blocking_pool, daemon.metrics, client, daemon.drivers, runner, files,
                    daemon.config, std::move(*builder_options));
  }
  web::Router router(web::LauncherEndpoints(loop, launcher, daemon.prometheus));
  net::HttpServer web_server(
      loop, [&router](net::HttpRequest request) { return router.Answer(std::move(request)); });
  Parts parts{client, launcher, builder ? &*builder : nullptr};
  Ending ending;
  TaskGroup tasks(loop, Log());
  try {
    if (!options.is_without_webapp) web_server.Listen(config.webapp.listen_address, config.webapp.port);
    tasks.Spawn("wait for a signal", AwaitSignal(daemon, ending));
    tasks.Spawn("wait for a reload", AwaitReload(daemon));
    tasks.Spawn("run launcher and builder", Run(daemon, parts, ending));
  } catch (...) {
    ending.Fail(std::current_exception());
  }
  co_await ending.reached.Wait();
  std::exception_ptr error = ending.error;
  if (!ending.is_immediate) {
    co_await tasks.Stop();
    co_await StopParts(parts);
  }
  co_await client.Close();
  // Nothing is stopped in order; the closed session has freed every lock (D-65), and what
  // the embedded server has answered is on disk.
  if (ending.is_immediate) daemon.service.EndAtOnce();
  co_await StopParts(parts);
  co_await web_server.Stop();
  if (error) std::rethrow_exception(error);
}

Task<> ServeWithZooKeeper(Daemon& daemon, const cli::StandaloneOptions& options) {
  const config::ZooKeeperSettings& zookeeper = daemon.config->common.zookeeper;
  BlockingPool blocking_pool;
  if (!zookeeper.servers.empty()) {
    co_await Serve(daemon, options, blocking_pool);
    co_return;
  }
  // Its own thread: nothing that blocks elsewhere holds up a write.
  BlockingPool disk(1);
  cli::MakeStateDirectory(zookeeper.embedded);
  zk::server::Server server(daemon.loop, disk, cli::EmbeddedServerOptions(zookeeper.embedded));
  std::exception_ptr error;
  try {
    co_await server.Start();
    co_await Serve(daemon, options, blocking_pool);
  } catch (...) {
    error = std::current_exception();
  }
  co_await server.Stop();
  if (error) std::rethrow_exception(error);
}

void Run(const cli::StandaloneOptions& options, process::Background& background) {
  Daemon daemon(options, background, Log());
  if (!daemon.config->common.images_dir) Log().Info("There is no images-dir, so no images are built");
  RunToEnd(daemon.loop, ServeWithZooKeeper(daemon, options));
}

}  // namespace

int RunStandalone(int argc, char** arguments) {
  debug::StackDump::BlockSignal();
  cli::StandaloneOptions options;
  if (auto status = cli::ParseStandaloneOptions(argc, arguments, options)) return *status;
  return RunDaemon("nodepool standalone", options,
                   [&](process::Background& background) { Run(options, background); });
}

}  // namespace nodepool
