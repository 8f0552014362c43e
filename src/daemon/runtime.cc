#include "daemon/runtime.h"

#include <cstdlib>

#include "daemon/embedded_server.h"
#include "daemon/outside_drivers.h"

namespace nodepool::daemon {
namespace {

constexpr const char* kServersLoop = "The embedded ZooKeeper server's loop";

std::optional<std::string> ProfileFolder() {
  const char* folder = std::getenv("NODEPOOL_PROFILE_DIR");
  return folder != nullptr && *folder != 0 ? std::optional<std::string>(folder) : std::nullopt;
}

// Null: the environment configures none.
net::Statsd* OpenStatsd(Loop& loop, std::optional<net::Statsd>& statsd) {
  auto address = net::StatsdFromEnvironment(std::getenv("STATSD_HOST"), std::getenv("STATSD_PORT"));
  return address ? &statsd.emplace(loop, *address) : nullptr;
}

std::shared_ptr<const driver::LoadedConfig> LoadDriversAndConfig(const Program& program,
                                                                 const Options& options,
                                                                 driver::Registry& drivers) {
  RequireConfig(options.config_path);
  program.add_drivers(drivers);
  AddOutsideDrivers(options.drivers_dirs, drivers, log::Logger("nodepool.driver.Drivers"));
  auto config = driver::LoadConfig(options.config_path, options.secure_path, drivers, program.other_drivers);
  if (!config) throw config.error();
  return *config;
}

// Null: the program uses the servers that the configuration names.
std::unique_ptr<zk::server::ServerThread> MakeServer(const Program& program, Runtime& runtime) {
  const config::ZooKeeperSettings& zookeeper = runtime.config->common.zookeeper;
  if (!program.has_zookeeper || !zookeeper.servers.empty()) return nullptr;
  return std::make_unique<zk::server::ServerThread>(OwnServerOptions(zookeeper.embedded, runtime));
}

std::vector<debug::StackDump::Dumped> LoopsOf(Loop& loop,
                                              const std::unique_ptr<zk::server::ServerThread>& server) {
  std::vector<debug::StackDump::Dumped> loops = {{loop, "The loop"}};
  if (server) loops.push_back({server->loop(), kServersLoop});
  return loops;
}

}  // namespace

Runtime::Runtime(const Program& program, const Options& options, process::Background& background)
    : logger(program.logger),
      service(loop, background),
      metrics(OpenStatsd(loop, statsd), &prometheus),
      follower(loop, options.config_path, options.secure_path, drivers, program.other_drivers),
      config(LoadDriversAndConfig(program, options, drivers)),
      server(MakeServer(program, *this)),
      stack_dump(LoopsOf(loop, server), ProfileFolder()),
      watchdog({loop, "The loop", "every request and node of this process"}, drivers.NamesByFile()),
      clock_watch(loop) {
  if (server)
    server_watchdog.emplace(debug::Watchdog::Watched{server->loop(), kServersLoop, "every client of it"},
                            debug::Watchdog::Owners());
  follower.InForce(*config);
  for (const std::string& warning : config->common.warnings) logger.Warning("{}", warning);
  if (options.wants_repl) {
    logger.Warning(
        "--repl is ignored: there is no interactive console; SIGUSR2 and a launcher's web server show "
        "what goes on");
  }
}

}  // namespace nodepool::daemon
