#include "sim/launcher_process.h"

#include <boost/asio/co_spawn.hpp>

#include "async/attempt.h"

namespace nodepool::sim {
namespace {

// How long after a reconnection the caches may still lag behind.
constexpr Duration kCatchingUp = std::chrono::seconds(15);

driver::Registry DriversOf(Clouds& clouds, ApiUser& user) {
  driver::Registry registry;
  registry.Add(std::make_unique<FlakyDriver>(clouds, user));
  return registry;
}

// From one operation to whatever waits.
zk::GroupingClient::Bounds BoundsOf(std::uint64_t seed) {
  zk::GroupingClient::Bounds bounds;
  bounds.ops = std::size_t{1} << seed % 9;
  bounds.at_once = 1 + static_cast<int>(seed % 3);
  return bounds;
}

}  // namespace

LauncherProcess::LauncherProcess(Environment environment, std::uint64_t seed, std::string name,
                                 std::shared_ptr<const driver::LoadedConfig> config)
    : environment_(environment),
      participant_(std::make_shared<Participant>()),
      random_(seed),
      zk_(environment.loop, environment.zk, environment.faults),
      grouping_zk_(zk_, BoundsOf(seed)),
      drivers_(DriversOf(environment.clouds, participant_->api)),
      tasks_(environment.loop, log::Logger("sim.launcher")) {
  participant_->name = name;
  participant_->is_launcher = true;
  participant_->client = &zk_;
  environment_.inspector.Add(participant_);
  launcher::Launcher::Options options{name, name + ".example.org", {}};
  launcher_ =
      std::make_unique<launcher::Launcher>(environment_.loop, random_, environment_.blocking_pool, metrics_,
                                           grouping_zk_, drivers_, std::move(config), std::move(options));
  if (environment_.inspector.trace) environment_.inspector.trace("* " + name + " starts");
  boost::asio::co_spawn(environment_.loop.context(), Live(), [this](std::exception_ptr error) {
    is_over_ = true;
    if (error) environment_.inspector.Report(this->name() + " ends with an error: " + MessageOf(error), {});
  });
}

LauncherProcess::~LauncherProcess() { participant_->client = nullptr; }

// In the same order as the program's main().
Task<> LauncherProcess::Live() {
  tasks_.Spawn("start the launcher", StartLauncher());
  co_await end_.Wait();
  co_await tasks_.Stop();
  co_await launcher_->Stop();
  co_await zk_.Close();
  co_await launcher_->Stop();
}

// Connection faults are retried; a cancellation ends it.
Task<> LauncherProcess::StartLauncher() {
  Outcome<> started = co_await Attempt(launcher_->Start());
  is_started_ = started.has_value();
  if (!started && !ending_since_)
    environment_.inspector.Report(name() + " cannot start: " + started.error().message(), {});
}

void LauncherProcess::End() {
  if (!ending_since_) ending_since_ = environment_.loop.SteadyNow();
  end_.Set();
}

void LauncherProcess::Crash(testing::MemoryZk::UnderWay under_way) {
  if (zk_.is_dead() || is_over_) return;
  if (environment_.inspector.trace) environment_.inspector.trace("* " + name() + " crashes");
  participant_->api.is_dead = true;
  zk_.Kill(under_way);
  End();
}

void LauncherProcess::CrashAfter(int operations, testing::MemoryZk::UnderWay under_way) {
  zk_.CallAfter(operations, [this, under_way] { Crash(under_way); });
}

void LauncherProcess::Stop() {
  if (environment_.inspector.trace) environment_.inspector.trace("* " + name() + " is stopped");
  End();
}

void LauncherProcess::Reconfigure(std::shared_ptr<const driver::LoadedConfig> config) {
  if (!is_serving()) return;
  if (environment_.inspector.trace)
    environment_.inspector.trace("* " + name() + " gets another configuration");
  launcher_->Reconfigure(std::move(config));
}

void LauncherProcess::Disconnect(testing::MemoryZk::UnderWay under_way) {
  if (is_dead() || is_over_) return;
  if (environment_.inspector.trace) environment_.inspector.trace("* " + name() + " loses its connection");
  if (!participant_->blind_since) participant_->blind_since = environment_.loop.SteadyNow();
  zk_.Disconnect(under_way);
}

void LauncherProcess::Reconnect() {
  if (is_dead() || is_over_) return;
  if (environment_.inspector.trace) environment_.inspector.trace("* " + name() + " may connect again");
  zk_.Reconnect();
  tasks_.Spawn("see again", SeeAgain());
}

Task<> LauncherProcess::SeeAgain() {
  co_await environment_.loop.SleepFor(kCatchingUp);
  if (zk_.state() == zk::SessionState::kConnected) participant_->blind_since.reset();
}

}  // namespace nodepool::sim
