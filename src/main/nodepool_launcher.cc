#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <iostream>

#include "async/event.h"
#include "async/task_group.h"
#include "base/random.h"
#include "cli/connection.h"
#include "cli/launcher_options.h"
#include "launcher/launcher.h"
#include "main/builtin_drivers.h"
#include "zk/wire_client.h"

namespace nodepool {
namespace {

// How the program comes to its end.
struct Ending {
  Event reached;
  bool is_immediate = false;
  std::exception_ptr error;  // the launcher could not start
};

// SIGINT and SIGUSR1 end it gracefully, SIGTERM at once.
Task<> AwaitSignal(Loop& loop, Ending& ending) {
  boost::asio::signal_set signals(loop.context(), SIGINT, SIGTERM, SIGUSR1);
  int signal = co_await signals.async_wait(boost::asio::use_awaitable);
  ending.is_immediate = signal == SIGTERM;
  ending.reached.Set();
}

Task<> Start(Loop& loop, zk::Client& client, launcher::Launcher& launcher, std::string servers,
             Ending& ending) {
  try {
    co_await cli::AwaitConnection(loop, client, std::move(servers));
    co_await launcher.Start();
  } catch (...) {
    ending.error = std::current_exception();
    ending.reached.Set();
  }
}

Task<> Serve(Loop& loop, Random& random, driver::Registry& drivers, zk::Client& client,
             std::shared_ptr<const driver::LoadedConfig> config, std::string servers,
             launcher::Intervals intervals) {
  BlockingPool blocking_pool;
  launcher::Launcher::Options options{cli::Hostname(), cli::FullyQualifiedHostname(), intervals};
  launcher::Launcher launcher(loop, random, blocking_pool, client, drivers, config, std::move(options));
  Ending ending;
  TaskGroup tasks(loop, log::Logger("nodepool.NodePool"));
  tasks.Spawn("wait for a signal", AwaitSignal(loop, ending));
  tasks.Spawn("start the launcher", Start(loop, client, launcher, std::move(servers), ending));
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
  if (error) std::rethrow_exception(error);
}

int Run(const cli::LauncherOptions& options) {
  driver::Registry drivers;
  AddBuiltinDrivers(drivers);
  auto config = driver::LoadConfig(options.config_path, options.secure_path, drivers, KnownDriverSchemas());
  if (!config) throw config.error();
  log::Logger logger("nodepool.NodePool");
  for (const std::string& warning : (*config)->common.warnings) logger.Warning("{}", warning);
  Loop loop;
  SystemRandom random;
  const config::ZooKeeperSettings& settings = (*config)->common.zookeeper;
  zk::WireClient client(loop, random, cli::ConnectionOptions(settings));
  launcher::Intervals intervals;
  if (options.cleanup_interval) {
    intervals.cleanup =
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*options.cleanup_interval));
  }
  RunToEnd(loop, Serve(loop, random, drivers, client, *config, cli::ServerNames(settings), intervals));
  return 0;
}

}  // namespace
}  // namespace nodepool

int main(int argc, char** argv) {
  using namespace nodepool;
  std::signal(SIGPIPE, SIG_IGN);
  cli::LauncherOptions options;
  if (auto status = cli::ParseLauncherOptions(argc, argv, options)) return *status;
  log::ToStdout();
  log::SetLevel("nodepool", options.is_debug ? log::Level::kDebug : log::Level::kInfo);
  try {
    return Run(options);
  } catch (const std::exception& error) {
    std::cerr << "nodepool-launcher: " << error.what() << "\n";
    return 1;
  }
}
