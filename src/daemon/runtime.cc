#include "daemon/runtime.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/log/log_setup.h"
#include "daemon/program.h"

namespace nodepool::daemon {

namespace {

constexpr Duration kInterval = std::chrono::seconds(1);
// Less is NTP's ordinary correction.
constexpr Duration kJump = std::chrono::seconds(1);

}  // namespace

ClockWatch::ClockWatch(Loop& loop) : loop_(loop), offset_(Offset()) { Wait(); }

void ClockWatch::Wait() {
  timer_ = loop_.clock().CallAt(loop_.SteadyNow() + kInterval, [this] { Check(); });
}

void ClockWatch::Check() {
  Duration jump = Offset() - offset_;
  offset_ += jump;
  Wait();
  if (std::chrono::abs(jump) < kJump) return;
  logger_.Warning(
      "The system's clock was set {} by {:.0f} s. Ages of nodes and images are computed with the new time; "
      "check the time synchronization of this machine",
      jump > Duration(0) ? "forward" : "back", std::chrono::duration<double>(std::chrono::abs(jump)).count());
}

Service::Service(Loop& loop, process::Background& background)
    : loop_(loop),
      background_(background),
      manager_(std::getenv("NOTIFY_SOCKET")),
      watchdog_(net::WatchdogInterval(std::getenv("WATCHDOG_USEC"), std::getenv("WATCHDOG_PID"))) {
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) unsetenv(name);
  if (watchdog_) Feed();
}

Service::~Service() { loop_.clock().CancelTimer(timer_); }

void Service::Feed() {
  manager_.Notify("WATCHDOG=1");
  timer_ = loop_.clock().CallAt(loop_.SteadyNow() + *watchdog_ / 2, [this] { Feed(); });
}

void Service::Started(const std::string& status) {
  background_.Started();
  manager_.Notify(net::StatusLine(status));
}

void Service::Serving(std::size_t providers) {
  is_serving_ = true;
  manager_.Notify("READY=1\n" + net::StatusLine(fmt::format("Serving; providers: {}", providers)));
}

void Service::Reloading() {
  if (!is_serving_) return;
  // The service manager uses the same clock.
  auto now = std::chrono::duration_cast<std::chrono::microseconds>(loop_.SteadyNow().time_since_epoch());
  manager_.Notify(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", now.count()));
}

void Service::Refused(const std::string& why) {
  if (!is_serving_) return;
  manager_.Notify(
      "READY=1\n" +
      net::StatusLine("Serving with the previous configuration; the changed one cannot be used: " + why));
}

void Service::Stopping() { manager_.Notify("STOPPING=1\n" + net::StatusLine("Stopping")); }

void Service::EndAtOnce() {
  background_.End();
  std::quick_exit(0);
}

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
  return Adjusted(program, *config);
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

std::shared_ptr<const driver::LoadedConfig> Adjusted(const Program& program,
                                                     std::shared_ptr<const driver::LoadedConfig> loaded) {
  if (!program.adjust) return loaded;
  auto adjusted = std::make_shared<driver::LoadedConfig>(*loaded);
  program.adjust(adjusted->common);
  return adjusted;
}

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

void PrepareSignals() {
  std::signal(SIGPIPE, SIG_IGN);
  debug::StackDump::BlockSignal();
}

Task<> AwaitSignal(Runtime& runtime, Ending& ending) {
  boost::asio::signal_set signals(runtime.loop.context(), SIGINT, SIGTERM, SIGUSR1);
  int signal = co_await signals.async_wait(boost::asio::use_awaitable);
  runtime.service.Stopping();
  ending.is_immediate = signal == SIGTERM;
  ending.reached.Set();
}

Task<> AwaitReload(Runtime& runtime) {
  boost::asio::signal_set signals(runtime.loop.context(), SIGHUP);
  while (true) {
    co_await signals.async_wait(boost::asio::use_awaitable);
    runtime.service.Reloading();
    log::ReopenFiles();
    runtime.follower.Reload();
  }
}

zk::server::ServerOptions EmbeddedServerOptions(const config::EmbeddedZooKeeper& embedded) {
  zk::server::ServerOptions options;
  options.port = embedded.port;
  options.journal = embedded.state_dir + "/zookeeper.sqlite";
  if (embedded.tls) {
    options.tls_address = embedded.tls->listen_address;
    options.tls_port = embedded.tls->port;
    const config::ZooKeeperTls& files = embedded.tls->files;
    options.tls = zk::TlsFiles{files.cert, files.key, files.ca};
  }
  return options;
}

zk::server::ServerOptions OwnServerOptions(const config::EmbeddedZooKeeper& embedded, Runtime& runtime) {
  zk::server::ServerOptions options = EmbeddedServerOptions(embedded);
  options.own_password = runtime.own_password;
  options.on_disk_trouble = [&runtime](const std::string& cause) {
    boost::asio::post(runtime.loop.context(), [&runtime, cause] { runtime.state_fault = cause; });
  };
  return options;
}

void MakeStateDirectory(const config::EmbeddedZooKeeper& embedded) {
  std::error_code error;
  std::filesystem::create_directories(embedded.state_dir, error);
  if (!error) return;
  throw Error(Verdict::kInvalid, fmt::format("embedded-zookeeper: cannot make the state-dir {}: {}",
                                             embedded.state_dir, error.message()));
}

}  // namespace nodepool::daemon
