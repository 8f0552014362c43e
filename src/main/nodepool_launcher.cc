#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <iostream>

#include "async/deadline.h"
#include "base/random.h"
#include "cli/connection.h"
#include "cli/launcher_options.h"
#include "launcher/launcher.h"
#include "main/builtin_drivers.h"
#include "zk/wire_client.h"

namespace nodepool {
namespace {

enum class Ending { kGraceful, kImmediate };

// Ends when a signal asks for it: SIGINT and SIGUSR1 gracefully, SIGTERM at once.
Task<Ending> AwaitSignal(boost::asio::signal_set& signals) {
  int signal = co_await signals.async_wait(boost::asio::use_awaitable);
  co_return signal == SIGTERM ? Ending::kImmediate : Ending::kGraceful;
}

Task<> Serve(Loop& loop, Random& random, driver::Registry& drivers, zk::Client& client,
             std::shared_ptr<const driver::LoadedConfig> config, std::string servers) {
  BlockingPool blocking_pool;
  launcher::Launcher::Options options{cli::Hostname(), cli::FullyQualifiedHostname(), {}};
  launcher::Launcher launcher(loop, random, blocking_pool, client, drivers, config, std::move(options));
  TaskGroup starting(loop, log::Logger("nodepool.NodePool"));
  auto start = [](Loop& l, zk::Client& c, launcher::Launcher& la, std::string s) -> Task<> {
    co_await cli::AwaitConnection(l, c, std::move(s));
    co_await la.Start();
  };
  starting.Spawn("start the launcher", start(loop, client, launcher, std::move(servers)));
  boost::asio::signal_set signals(loop.context(), SIGINT, SIGTERM, SIGUSR1);
  Ending ending = co_await AwaitSignal(signals);
  if (ending == Ending::kGraceful) {
    co_await starting.Stop();
    co_await launcher.Stop();
  }
  co_await client.Close();
  // Nothing is stopped in order; the closed session has freed every lock (D-65).
  if (ending == Ending::kImmediate) std::_Exit(0);
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
  RunToEnd(loop, Serve(loop, random, drivers, client, *config, cli::ServerNames(settings)));
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
