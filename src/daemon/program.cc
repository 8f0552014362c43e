#include "daemon/program.h"

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <limits>
#include <string>

#include "async/task.h"
#include "async/task_group.h"
#include "base/log/log_setup.h"
#include "base/log/log_sinks.h"
#include "config/logging/log_file.h"
#include "daemon/connection.h"
#include "daemon/memory.h"
#include "daemon/runtime.h"
#include "driver/loading/load_drivers.h"
#include "process/pid_file.h"
#include "zk/grouping_client.h"
#include "zk/wire/wire_client.h"

namespace nodepool::daemon {

void AddOutsideDrivers(std::vector<std::string> named, driver::Registry& drivers, const log::Logger& logger) {
  std::vector<std::string> directories =
      driver::DriverDirectories(std::move(named), std::getenv("NODEPOOL_DRIVERS_PATH"));
  for (const std::string& fault : driver::LoadDrivers(directories, drivers)) logger.Error("{}", fault);
}

namespace {

// From the first configuration with such a provider on until the end: machines may outlive their provider.
void GuardServer(Runtime& runtime, const driver::LoadedConfig& config) {
  std::optional<ProviderName> provider = driver::ProviderThatReachesThisHost(config);
  if (!provider || runtime.needs_client_secret) return;
  runtime.needs_client_secret = true;
  runtime.logger.Info(
      "Machines of provider {} can connect to this host's loopback interface: clients of the embedded "
      "ZooKeeper server have to know its secret, in {}",
      *provider, ClientSecretFile(runtime.config->common.zookeeper.embedded));
  runtime.server->SetClientSecret(runtime.client_secret);
}

using LoadedConfigPtr = std::shared_ptr<const driver::LoadedConfig>;

// The client and the parts that use it.
class Session {
 public:
  Session(const Program& program, Runtime& runtime)
      : program_(program),
        runtime_(runtime),
        has_zookeeper_(program.has_zookeeper),
        wire_(runtime.loop, runtime.random, ClientOptions()),
        parts_(program.make_parts(runtime, client_)) {
    runtime_.follower.OnRejection([this](const auto& rejected) { Rejected(rejected); });
  }
  ~Session() {
    runtime_.follower.OnRejection([](const auto&) {});
    while (!parts_.empty()) parts_.pop_back();
  }

  // Runs until a signal.
  Task<> Run();

 private:
  Task<> StartAndFollow();
  Task<> Serve(Ending& ending);
  Task<> StopParts();
  void Reconfigure(const LoadedConfigPtr& before, const LoadedConfigPtr& after);
  void Rejected(const std::optional<RejectedConfiguration>& rejected);
  config::ZooKeeperSettings ZooKeeperOf(const config::ZooKeeperSettings& settings) const {
    return has_zookeeper_ ? EffectiveZooKeeper(settings) : settings;
  }

  zk::WireOptions ClientOptions() const {
    zk::WireOptions options = ConnectionOptions(ZooKeeperOf(runtime_.config->common.zookeeper));
    if (runtime_.server) options.opening_password = runtime_.own_password;
    return options;
  }

  // The server of this process needs its processor time as much as a trip to it does: nothing is gained
  // there.
  zk::GroupingClient::Bounds Grouping() const {
    zk::GroupingClient::Bounds bounds;
    if (runtime_.server) bounds.at_once = std::numeric_limits<int>::max();
    return bounds;
  }

  const Program& program_;
  Runtime& runtime_;
  bool has_zookeeper_;
  zk::WireClient wire_;
  zk::GroupingClient client_{wire_, Grouping()};
  Parts parts_;
};

void Session::Reconfigure(const LoadedConfigPtr& before, const LoadedConfigPtr& after) {
  const config::ZooKeeperSettings& old = before->common.zookeeper;
  const config::ZooKeeperSettings& now = after->common.zookeeper;
  bool is_another = old.servers.empty() != now.servers.empty() || old.embedded != now.embedded;
  if (has_zookeeper_ && is_another) {
    runtime_.logger.Warning("The change of the ZooKeeper server takes effect at the next start");
  } else {
    FollowSettings(wire_, ZooKeeperOf(old), ZooKeeperOf(now));
  }
  if (runtime_.server) GuardServer(runtime_, *after);
  for (const auto& part : parts_) part->Reconfigure(after);
}

void Session::Rejected(const std::optional<RejectedConfiguration>& rejected) {
  if (rejected) runtime_.service.Refused(rejected->error);
  for (const auto& part : parts_) part->ConfigurationRejected(rejected);
}

Task<> Session::StartAndFollow() {
  LoadedConfigPtr config = runtime_.config;
  for (const auto& part : parts_) part->Prepare();
  std::string servers = ServerNames(ZooKeeperOf(config->common.zookeeper));
  runtime_.service.Started("Waiting for ZooKeeper at " + servers);
  co_await AwaitConnection(runtime_.loop, client_, servers);
  co_await CheckPlaceOfRecords(runtime_.loop, runtime_.random, config->common.zookeeper);
  for (const auto& part : parts_) co_await part->Start();
  runtime_.service.Serving(config->providers.size());
  while (true) {
    LoadedConfigPtr loaded = co_await runtime_.follower.Next();
    LoadedConfigPtr next = Adjusted(program_, std::move(loaded));
    Reconfigure(config, next);
    config = std::move(next);
    runtime_.service.Serving(config->providers.size());
  }
}

Task<> Session::Serve(Ending& ending) {
  Outcome<> served = co_await Attempt(StartAndFollow());
  if (!served) ending.failure = served.error();
  ending.reached.Set();
}

Task<> Session::StopParts() {
  for (const auto& part : parts_) co_await part->Stop();
}

Task<> Session::Run() {
  Ending ending;
  TaskGroup tasks(runtime_.loop, runtime_.logger);
  tasks.Spawn("wait for a signal", AwaitSignal(runtime_, ending));
  tasks.Spawn("wait for a reload", AwaitReload(runtime_));
  tasks.Spawn("do the daemon's work", Serve(ending));
  co_await ending.reached.Wait();
  std::optional<Failure> failure = ending.failure;
  if (!ending.is_immediate) {
    co_await tasks.Stop();
    co_await StopParts();
  }
  co_await client_.Close();
  // Nothing is stopped gracefully: the closed session has freed every lock (D-65), a running build is ended
  // by its supervisor, and what the embedded server has acknowledged is on disk.
  if (ending.is_immediate) runtime_.service.EndAtOnce();
  co_await StopParts();
  if (failure) failure->Rethrow();
}

Task<> RunSession(const Program& program, Runtime& runtime) {
  Session session(program, runtime);
  co_await session.Run();
}

Task<> RunWithServer(const Program& program, Runtime& runtime) {
  const config::EmbeddedZooKeeper& embedded = runtime.config->common.zookeeper.embedded;
  MakeStateDirectory(embedded);
  runtime.client_secret = MakeClientSecret(ClientSecretFile(embedded));
  GuardServer(runtime, *runtime.config);
  co_await runtime.server->Start();
  co_await RunSession(program, runtime);
}

}  // namespace

Task<> RunParts(const Program& program, Runtime& runtime) {
  if (!runtime.server) {
    co_await RunSession(program, runtime);
    co_return;
  }
  auto stop = [&runtime] { return runtime.server->Stop(); };
  co_await WithCleanup(RunWithServer(program, runtime), stop);
}

namespace {

// Sets up logging by the file given with -l, else to the daemon's output, with the level given with -d.
// Error(kInvalid), which begins with the file.
void SetUpLogging(const Options& options) {
  if (options.logging_path) {
    Expected<log::Setup> setup = config::ReadLogFile(*options.logging_path);
    if (!setup) throw setup.error();
    log::Apply(*setup);
    return;
  }
  if (options.usual_logging && !options.is_debug) return log::Apply(*options.usual_logging);
  if (!options.is_foreground) {
    log::ToFile(options.log_path);
  } else if (!log::IsJournal(STDOUT_FILENO) || !log::ToJournal()) {
    log::ToStdout();
  }
  log::SetLevel("nodepool", options.is_debug ? log::Level::kDebug : log::Level::kInfo);
}

}  // namespace

int RunDaemon(const Program& program, const Options& options) {
  PrepareSignals();
  process::Background background;
  bool has_log = false;
  try {
    if (!options.is_foreground) background.Enter(options.pid_path);
    ReturnUnusedMemory();
    SetUpLogging(options);
    has_log = true;
    Runtime runtime(program, options, background);
    RunToEnd(runtime.loop, RunParts(program, runtime));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << program.name << ": " << error.what() << "\n";
    if (has_log && background.is_entered())
      log::Logger("nodepool").Error("{} ends: {}", program.name, error.what());
    return 1;
  }
}

}  // namespace nodepool::daemon
