#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "async/task_group.h"
#include "base/random.h"
#include "builder/builder.h"
#include "builder/directory_files.h"
#include "cli/builder_options.h"
#include "cli/connection.h"
#include "debug/stack_dump.h"
#include "debug/watchdog.h"
#include "driver/config_follower.h"
#include "main/builder_setup.h"
#include "main/builtin_drivers.h"
#include "main/daemon.h"
#include "net/statsd.h"
#include "process/system_runner.h"
#include "zk/wire_client.h"

namespace nodepool {
namespace {

// What the program consists of, from the bottom up.
struct Program {
  Loop& loop;
  Random& random;
  driver::Registry& drivers;
  zk::WireClient& client;
  driver::ConfigFollower& follower;
  metrics::Metrics& metrics;
  std::shared_ptr<const driver::LoadedConfig> config;
  builder::Builder::Options options;
};

Task<> Start(Program& program, builder::Builder& builder, Ending& ending) {
  std::shared_ptr<const driver::LoadedConfig> config = program.config;
  try {
    co_await cli::AwaitConnection(program.loop, program.client, cli::ServerNames(config->common.zookeeper));
    co_await builder.Start();
    while (true) {
      std::shared_ptr<const driver::LoadedConfig> next = co_await program.follower.Next();
      cli::FollowSettings(program.client, config->common.zookeeper, next->common.zookeeper);
      builder.Reconfigure(next);
      config = std::move(next);
    }
  } catch (...) {
    ending.Fail(std::current_exception());
  }
}

Task<> Serve(Program& program) {
  Loop& loop = program.loop;
  BlockingPool blocking_pool;
  process::SystemRunner runner(loop);
  builder::DirectoryFiles files(blocking_pool);
  builder::Builder builder(loop, program.random, blocking_pool, program.metrics, program.client,
                           program.drivers, runner, files, program.config, program.options);
  Ending ending;
  TaskGroup tasks(loop, log::Logger("nodepool.builder"));
  tasks.Spawn("wait for a signal", AwaitSignal(loop, ending));
  tasks.Spawn("wait for a reload", AwaitReload(loop, program.follower));
  tasks.Spawn("run the builder", Start(program, builder, ending));
  co_await ending.reached.Wait();
  std::exception_ptr error = ending.error;
  if (!ending.is_immediate) {
    co_await tasks.Stop();
    co_await builder.Stop();
  }
  co_await program.client.Close();
  // Nothing is stopped in order; the closed session has freed every lock (D-65), and a
  // build that runs is ended by its supervisor.
  if (ending.is_immediate) std::_Exit(0);
  co_await builder.Stop();
  if (error) std::rethrow_exception(error);
}

int Run(const cli::BuilderOptions& options) {
  Loop loop;
  std::optional<net::Statsd> statsd;
  if (auto address = net::StatsdFromEnvironment(std::getenv("STATSD_HOST"), std::getenv("STATSD_PORT"))) {
    statsd.emplace(loop, *address);
  }
  metrics::Metrics metrics(statsd ? &*statsd : nullptr, nullptr);
  driver::Registry drivers;
  AddDrivers(options.drivers_dirs, drivers);
  driver::ConfigFollower follower(loop, options.config_path, options.secure_path, drivers,
                                  KnownDriverSchemas());
  auto config = driver::LoadConfig(options.config_path, options.secure_path, drivers, KnownDriverSchemas());
  if (!config) throw config.error();
  log::Logger logger("nodepool.builder");
  for (const std::string& warning : (*config)->common.warnings) logger.Warning("{}", warning);
  if (options.wants_repl) logger.Warning("--repl is ignored: there is no interactive console, see SIGUSR2");
  const auto& images_dir = (*config)->common.images_dir;
  if (!images_dir) throw Error(Verdict::kInvalid, options.config_path + ": the builder needs images-dir");
  SystemRandom random;
  builder::Builder::Options builder_options = BuilderSetup(options, *images_dir, random);
  debug::StackDump stack_dump(loop, std::filesystem::temp_directory_path());
  debug::Watchdog watchdog(loop, drivers.NamesByFile());
  zk::WireClient client(loop, random, cli::ConnectionOptions((*config)->common.zookeeper));
  Program program{loop, random, drivers, client, follower, metrics, *config, std::move(builder_options)};
  RunToEnd(loop, Serve(program));
  return 0;
}

}  // namespace
}  // namespace nodepool

int main(int argc, char** argv) {
  using namespace nodepool;
  std::signal(SIGPIPE, SIG_IGN);
  debug::StackDump::BlockSignal();
  cli::BuilderOptions options;
  if (auto status = cli::ParseBuilderOptions(argc, argv, options)) return *status;
  try {
    SetUpLogging(options);
    return Run(options);
  } catch (const std::exception& error) {
    std::cerr << "nodepool-builder: " << error.what() << "\n";
    return 1;
  }
}
