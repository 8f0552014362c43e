#include "main/serve.h"

#include "async/task_group.h"
#include "builder/directory_files.h"
#include "cli/connection.h"
#include "cli/embedded_server.h"
#include "cli/host_name.h"
#include "net/http_server.h"
#include "process/system_runner.h"
#include "web/launcher_site.h"
#include "web/router.h"
#include "zk/server/server.h"
#include "zk/wire_client.h"

namespace nodepool {
namespace {

// The launcher and the web server that shows it. Its daemon outlives it.
struct LauncherPart {
  LauncherPart(Daemon& daemon, BlockingPool& blocking_pool, zk::Client& client,
               launcher::Launcher::Options options)
      : launcher(daemon.loop, daemon.random, blocking_pool, daemon.metrics, client, daemon.drivers,
                 daemon.config, std::move(options)),
        router(web::LauncherEndpoints(daemon.loop, launcher, daemon.prometheus)),
        web_server(daemon.loop,
                   [this](net::HttpRequest request) { return router.Answer(std::move(request)); }) {}

  launcher::Launcher launcher;
  web::Router router;
  net::HttpServer web_server;
};

// The builder and what it works with. Its daemon outlives it.
struct BuilderPart {
  BuilderPart(Daemon& daemon, BlockingPool& blocking_pool, zk::Client& client,
              builder::Builder::Options options)
      : runner(daemon.loop),
        files(blocking_pool),
        builder(daemon.loop, daemon.random, blocking_pool, daemon.metrics, client, daemon.drivers, runner,
                files, daemon.config, std::move(options)) {}

  process::SystemRunner runner;
  builder::DirectoryFiles files;
  builder::Builder builder;
};

// A daemon at work: its session and its parts.
class Work {
 public:
  Work(Daemon& daemon, Roles roles, const log::Logger& logger)
      : daemon_(daemon),
        logger_(logger),
        has_zookeeper_(roles.has_zookeeper),
        has_web_server_(roles.has_web_server),
        client_(daemon.loop, daemon.random,
                cli::ConnectionOptions(ZooKeeperOf(daemon.config->common.zookeeper))) {
    if (roles.launcher) launcher_.emplace(daemon, blocking_pool_, client_, std::move(*roles.launcher));
    if (roles.builder) builder_.emplace(daemon, blocking_pool_, client_, std::move(*roles.builder));
  }

  // Until a signal, with a ZooKeeper that can be reached.
  Task<> Run();

 private:
  Task<> Start(Ending& ending);
  Task<> StopParts();
  void Reconfigure(const std::shared_ptr<const driver::LoadedConfig>& before,
                   const std::shared_ptr<const driver::LoadedConfig>& after);
  config::ZooKeeperSettings ZooKeeperOf(const config::ZooKeeperSettings& settings) const {
    return has_zookeeper_ ? cli::OrEmbedded(settings) : settings;
  }

  Daemon& daemon_;
  log::Logger logger_;
  bool has_zookeeper_;
  bool has_web_server_;
  BlockingPool blocking_pool_;
  zk::WireClient client_;
  std::optional<LauncherPart> launcher_;
  std::optional<BuilderPart> builder_;
};

void Work::Reconfigure(const std::shared_ptr<const driver::LoadedConfig>& before,
                       const std::shared_ptr<const driver::LoadedConfig>& after) {
  const config::ZooKeeperSettings& old = before->common.zookeeper;
  const config::ZooKeeperSettings& now = after->common.zookeeper;
  bool is_another = old.servers.empty() != now.servers.empty() || old.embedded != now.embedded;
  if (has_zookeeper_ && is_another) {
    logger_.Warning("Another ZooKeeper server is used from the next start on");
  } else {
    cli::FollowSettings(client_, ZooKeeperOf(old), ZooKeeperOf(now));
  }
  if (launcher_) launcher_->launcher.Reconfigure(after);
  if (builder_) builder_->builder.Reconfigure(after);
}

Task<> Work::Start(Ending& ending) {
  std::shared_ptr<const driver::LoadedConfig> config = daemon_.config;
  try {
    std::string servers = cli::ServerNames(ZooKeeperOf(config->common.zookeeper));
    daemon_.service.Started("Waiting for ZooKeeper at " + servers);
    co_await cli::AwaitConnection(daemon_.loop, client_, servers);
    co_await cli::CheckPlaceOfRecords(daemon_.loop, daemon_.random, config->common.zookeeper);
    if (launcher_) co_await launcher_->launcher.Start();
    if (builder_) co_await builder_->builder.Start();
    daemon_.service.Serving(config->providers.size());
    while (true) {
      std::shared_ptr<const driver::LoadedConfig> next = co_await daemon_.follower.Next();
      Reconfigure(config, next);
      config = std::move(next);
      daemon_.service.Serving(config->providers.size());
    }
  } catch (...) {
    ending.Fail(std::current_exception());
  }
}

Task<> Work::StopParts() {
  if (launcher_) co_await launcher_->launcher.Stop();
  if (builder_) co_await builder_->builder.Stop();
}

Task<> Work::Run() {
  Ending ending;
  TaskGroup tasks(daemon_.loop, logger_);
  try {
    const config::WebAppSettings& webapp = daemon_.config->common.webapp;
    if (has_web_server_) launcher_->web_server.Listen(webapp.listen_address, webapp.port);
    tasks.Spawn("wait for a signal", AwaitSignal(daemon_, ending));
    tasks.Spawn("wait for a reload", AwaitReload(daemon_));
    tasks.Spawn("do the daemon's work", Start(ending));
  } catch (...) {
    ending.Fail(std::current_exception());
  }
  co_await ending.reached.Wait();
  std::exception_ptr error = ending.error;
  if (!ending.is_immediate) {
    co_await tasks.Stop();
    co_await StopParts();
  }
  co_await client_.Close();
  // Nothing is stopped in order; the closed session has freed every lock (D-65), a build that
  // runs is ended by its supervisor, and what the embedded server has answered is on disk.
  if (ending.is_immediate) daemon_.service.EndAtOnce();
  co_await StopParts();
  if (launcher_) co_await launcher_->web_server.Stop();
  if (error) std::rethrow_exception(error);
}

Task<> RunWork(Daemon& daemon, Roles roles, const log::Logger& logger) {
  Work work(daemon, std::move(roles), logger);
  co_await work.Run();
}

Task<> RunWithZooKeeper(Daemon& daemon, Roles roles, const log::Logger& logger) {
  const config::EmbeddedZooKeeper& embedded = daemon.config->common.zookeeper.embedded;
  // Its own thread: nothing that blocks elsewhere holds up a write.
  BlockingPool disk(1);
  cli::MakeStateDirectory(embedded);
  zk::server::Server server(daemon.loop, disk, cli::EmbeddedServerOptions(embedded));
  std::exception_ptr error;
  try {
    co_await server.Start();
    co_await RunWork(daemon, std::move(roles), logger);
  } catch (...) {
    error = std::current_exception();
  }
  co_await server.Stop();
  if (error) std::rethrow_exception(error);
}

}  // namespace

launcher::Launcher::Options LauncherSetup(const cli::DaemonOptions& options) {
  launcher::Launcher::Options setup{cli::Hostname(), cli::FullyQualifiedHostname(), {}};
  OverrideCleanupInterval(options, setup.intervals.cleanup);
  return setup;
}

void Serve(Daemon& daemon, Roles roles, const log::Logger& logger) {
  bool embeds = roles.has_zookeeper && daemon.config->common.zookeeper.servers.empty();
  auto run = embeds ? RunWithZooKeeper : RunWork;
  RunToEnd(daemon.loop, run(daemon, std::move(roles), logger));
}

}  // namespace nodepool
