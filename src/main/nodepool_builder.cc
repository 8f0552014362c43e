#include <csignal>

#include "async/task_group.h"
#include "builder/builder.h"
#include "builder/directory_files.h"
#include "cli/builder_options.h"
#include "cli/connection.h"
#include "debug/stack_dump.h"
#include "main/builder_setup.h"
#include "main/daemon.h"
#include "process/system_runner.h"
#include "zk/wire_client.h"

namespace nodepool {
namespace {

Task<> Start(Daemon& daemon, zk::WireClient& client, builder::Builder& builder, Ending& ending) {
  std::shared_ptr<const driver::LoadedConfig> config = daemon.config;
  try {
    std::string servers = cli::ServerNames(config->common.zookeeper);
    daemon.service.Started("Waiting for ZooKeeper at " + servers);
    co_await cli::AwaitConnection(daemon.loop, client, servers);
    co_await cli::CheckPlaceOfRecords(daemon.loop, daemon.random, config->common.zookeeper);
    co_await builder.Start();
    daemon.service.Serving(config->providers.size());
    while (true) {
      std::shared_ptr<const driver::LoadedConfig> next = co_await daemon.follower.Next();
      cli::FollowSettings(client, config->common.zookeeper, next->common.zookeeper);
      builder.Reconfigure(next);
      config = std::move(next);
      daemon.service.Serving(config->providers.size());
    }
  } catch (...) {
    ending.Fail(std::current_exception());
  }
}

Task<> Serve(Daemon& daemon, builder::Builder::Options options) {
  Loop& loop = daemon.loop;
  BlockingPool blocking_pool;
  zk::WireClient client(loop, daemon.random, cli::ConnectionOptions(daemon.config->common.zookeeper));
  process::SystemRunner runner(loop);
  builder::DirectoryFiles files(blocking_pool);
  builder::Builder builder(loop, daemon.random, blocking_pool, daemon.metrics, client, daemon.drivers, runner,
                           files, daemon.config, std::move(options));
  Ending ending;
  TaskGroup tasks(loop, log::Logger("nodepool.builder.NodePoolBuilder"));
  tasks.Spawn("wait for a signal", AwaitSignal(daemon, ending));
  tasks.Spawn("wait for a reload", AwaitReload(daemon));
  tasks.Spawn("run the builder", Start(daemon, client, builder, ending));
  co_await ending.reached.Wait();
  std::exception_ptr error = ending.error;
  if (!ending.is_immediate) {
    co_await tasks.Stop();
    co_await builder.Stop();
  }
  co_await client.Close();
  // Nothing is stopped in order; the closed session has freed every lock (D-65), and a
  // build that runs is ended by its supervisor.
  if (ending.is_immediate) daemon.service.EndAtOnce();
  co_await builder.Stop();
  if (error) std::rethrow_exception(error);
}

void Run(const cli::BuilderOptions& options, process::Background& background) {
  Daemon daemon(options, background, log::Logger("nodepool.builder.NodePoolBuilder"));
  const auto& images_dir = daemon.config->common.images_dir;
  if (!images_dir) throw Error(Verdict::kInvalid, options.config_path + ": the builder needs images-dir");
  RunToEnd(daemon.loop, Serve(daemon, BuilderSetup(options, *images_dir, daemon.random)));
}

}  // namespace
}  // namespace nodepool

int main(int argc, char** argv) {
  using namespace nodepool;
  std::signal(SIGPIPE, SIG_IGN);
  debug::StackDump::BlockSignal();
  cli::BuilderOptions options;
  if (auto status = cli::ParseBuilderOptions(argc, argv, options)) return *status;
  return RunDaemon("nodepool-builder", options,
                   [&](process::Background& background) { Run(options, background); });
}
