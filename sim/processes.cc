#include "sim/processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include "async/task.h"
#include "builder/validation.h"
#include "model/image.h"

namespace nodepool::sim {

using store::Change;

bool Stepper::RunOne() {
  loop_.context().restart();
  if (loop_.context().poll_one() == 0) return false;
  ++steps_;
  if (after_each_) after_each_();
  return true;
}

bool Stepper::PassTime(SteadyTime end) {
  if (!clock_.has_timers() || clock_.next_timer() > end) {
    clock_.AdvanceTo(end);
    return false;
  }
  // Timers run in the loop, as in the program.
  SteadyTime when = clock_.next_timer();
  boost::asio::post(loop_.context(), [this, when] { clock_.AdvanceTo(when); });
  return true;
}

namespace {

// Another contender for the same node may need a moment to leave the queue.
constexpr Duration kLockLimit = std::chrono::seconds(30);

}  // namespace

Consumer::Consumer(Loop& loop, testing::MemoryZk& zk, Random& faults, Inspector& inspector,
                   std::uint64_t seed, std::string name, Tally& tally)
    : loop_(loop),
      inspector_(inspector),
      tally_(tally),
      random_(seed),
      zk_(loop, zk, faults),
      store_(loop, zk_, random_),
      participant_(std::make_shared<Participant>()),
      tasks_(loop, log::Logger("sim.consumer")) {
  participant_->name = std::move(name);
  participant_->client = &zk_;
  inspector_.Add(participant_);
}

Consumer::~Consumer() { participant_->client = nullptr; }

void Consumer::Submit(RequestPlan plan) { tasks_.Spawn("consume", Serve(std::move(plan))); }

void Consumer::Vanish(testing::MemoryZk::UnderWay under_way) {
  if (inspector_.trace) inspector_.trace("* " + participant_->name + " vanishes");
  zk_.Kill(under_way);
  tasks_.CancelAll();
}

Task<> Consumer::Serve(RequestPlan plan) {
  NodeRequest request;
  request.SetState(RequestState::kRequested, loop_.Now());
  request.node_types = plan.labels;
  request.reuse = plan.reuse;
  request.requestor = "zuul";
  request.tenant_name = plan.tenant;
  request.provider = plan.provider;
  request.relative_priority = plan.relative_priority;
  RequestId id = co_await store_.requests.Create(plan.precedence, std::move(request), true);
  ++tally_.submitted;
  if (plan.reprioritise_after) tasks_.Spawn("reprioritise", Reprioritise(id, *plan.reprioritise_after));
  if (plan.withdraw_after) tasks_.Spawn("withdraw the request", WithdrawLater(id, *plan.withdraw_after));
  co_await AwaitDecision(id);
  auto decided = inspector_.requests().find(id);
  if (decided == inspector_.requests().end()) co_return;
  NodeRequest answer = decided->second;
  if (answer.state == RequestState::kFailed) {
    ++tally_.failed;
    co_return co_await store_.requests.Delete(id);
  }
  ++tally_.fulfilled;
  co_await loop_.SleepFor(plan.pickup);
  // Withdrawn meanwhile: the nodes are no longer ours.
  if (!inspector_.requests().contains(id)) co_return;
  if (plan.ending == RequestPlan::Ending::kUntaken) co_return co_await store_.requests.Delete(id);
  std::vector<store::LockedNode> nodes = co_await Take(id, std::move(answer));
  co_await store_.requests.Delete(id);
  co_await Use(std::move(nodes), std::move(plan));
}

Task<> Consumer::AwaitDecision(RequestId id) {
  while (true) {
    auto request = inspector_.requests().find(id);
    if (request == inspector_.requests().end()) co_return;
    if (request->second.state == RequestState::kFulfilled || request->second.state == RequestState::kFailed)
      co_return;
    co_await inspector_.RequestChanged(id);
  }
}

Task<> Consumer::Reprioritise(RequestId id, Duration after) {
  co_await loop_.SleepFor(after);
  std::optional<store::LockedRequest> request = co_await store_.requests.TryLock(id);
  if (!request) co_return;
  std::int64_t priority = static_cast<std::int64_t>(random_.Below(5));
  auto change = [priority](NodeRequest& record) {
    if (record.state != RequestState::kRequested) return Change::kSkip;
    record.relative_priority = priority;
    return Change::kWrite;
  };
  co_await request->UpdateAndUnlock(change);
}

Task<> Consumer::WithdrawLater(RequestId id, Duration after) {
  co_await loop_.SleepFor(after);
  if (!inspector_.requests().contains(id)) co_return;
  ++tally_.withdrawn;
  co_await store_.requests.Delete(id);
}

// No other process may change these nodes while the request exists.
Task<std::vector<store::LockedNode>> Consumer::Take(RequestId id, NodeRequest request) {
  std::vector<store::LockedNode> taken;
  for (const NodeId& node : request.nodes) {
    SteadyTime deadline = loop_.SteadyNow() + kLockLimit;
    std::optional<store::LockedNode> locked = co_await store_.nodes.Lock(node, deadline);
    bool is_ours =
        locked && locked->record().allocated_to == id && locked->record().state == NodeState::kReady;
    if (is_ours) {
      taken.push_back(std::move(*locked));
      continue;
    }
    // Expected only if the same client has just withdrawn the request.
    if (locked) co_await locked->Unlock();
    if (inspector_.requests().contains(id) && !zk_.is_dead()) {
      inspector_.Report(
          fmt::format("{} cannot take node {} of its fulfilled request {}", participant_->name, node, id),
          {id.value, node.value});
    }
  }
  co_return taken;
}

Task<> Consumer::Use(std::vector<store::LockedNode> nodes, RequestPlan plan) {
  WallTime now = loop_.Now();
  auto use = [now](Node& node) {
    node.SetState(NodeState::kInUse, now);
    return Change::kWrite;
  };
  for (store::LockedNode& node : nodes) co_await node.Update(use);
  co_await loop_.SleepFor(plan.use);
  now = loop_.Now();
  bool is_held = plan.ending == RequestPlan::Ending::kHeld;
  auto give_back = [now, is_held](Node& node) {
    node.SetState(is_held ? NodeState::kHold : NodeState::kUsed, now);
    if (is_held) node.hold_expiration = 60;
    return Change::kWrite;
  };
  for (store::LockedNode& node : nodes) {
    if (plan.ending != RequestPlan::Ending::kAbandoned) co_await node.Update(give_back);
    co_await node.Unlock();
  }
}

namespace {

using std::chrono::seconds;

constexpr Duration kLongestPause = seconds(40);
constexpr Duration kLongestCheck = seconds(20);
constexpr double kBadChecks = 0.4;
constexpr Duration kTimeout = std::chrono::minutes(8);

builder::Context ContextOf(const ImageBuilder::Environment& environment, Random& random,
                           metrics::Metrics& metrics, store::Store& store, store::Caches& caches,
                           process::Runner& runner, builder::LocalFiles& files) {
  return {.config = environment.scenario.launchers.front(),
          .loop = environment.loop,
          .random = random,
          .metrics = metrics,
          .store = store,
          .caches = caches,
          .runner = runner,
          .files = files};
}

ImageUpload UploadIn(ImageState state, WallTime now) {
  ImageUpload upload;
  upload.state = state;
  upload.state_time = now;
  return upload;
}

}  // namespace

Task<process::Exit> ImageBuilder::Checks::Run(process::Command /*command*/) {
  Random& random = owner_.random_;
  co_await owner_.environment_.loop.SleepFor(
      std::chrono::duration_cast<Duration>(random.Between(0, 1) * kLongestCheck));
  bool is_bad = !owner_.is_calm_ && random.Between(0, 1) < kBadChecks;
  co_return process::Exit{is_bad ? 1 : 0, false, ""};
}

ImageBuilder::ImageBuilder(Environment environment, std::uint64_t seed, std::string name)
    : environment_(environment),
      random_(seed),
      zk_(environment.loop, environment.zk, environment.faults),
      store_(environment.loop, zk_, random_),
      caches_(environment.loop, zk_),
      files_(environment.blocking_pool),
      context_(ContextOf(environment, random_, metrics_, store_, caches_, checks_, files_)),
      participant_(std::make_shared<Participant>()),
      tasks_(environment.loop, log::Logger("sim.image_builder")) {
  participant_->name = std::move(name);
  participant_->client = &zk_;
  environment_.inspector.Add(participant_);
  tasks_.Spawn("images", Live());
}

ImageBuilder::~ImageBuilder() { participant_->client = nullptr; }

void ImageBuilder::Vanish(testing::MemoryZk::UnderWay under_way) {
  if (environment_.inspector.trace) environment_.inspector.trace("* " + participant_->name + " vanishes");
  zk_.Kill(under_way);
  tasks_.CancelAll();
}

Task<> ImageBuilder::Live() {
  build_ = co_await FindBuild();
  std::set<ProviderName> providers;
  for (const auto& [key, pool] : environment_.scenario.pools) providers.insert(key.provider);
  for (const ProviderName& provider : providers)
    tasks_.Spawn("images of " + provider.value, Supply(provider));
}

// The one build that there is.
Task<store::BuildKey> ImageBuilder::FindBuild() {
  const ImageName image(kImage);
  while (true) {
    std::vector<store::StoredBuild> builds = co_await store_.images.ListBuilds(image);
    if (!builds.empty()) co_return builds.front().id;
    std::optional<zk::HeldLock> lock = co_await store_.images.TryLock(image);
    if (lock) {
      ImageBuild record;
      record.state = ImageState::kReady;
      record.state_time = environment_.loop.Now();
      Task<store::StoredBuild> create = store_.images.CreateBuild(image, std::move(record), *lock);
      Task<store::StoredBuild> locked = store_.tree.Holding(*lock, std::move(create));
      store::StoredBuild build = co_await std::move(locked);
      co_return build.id;
    }
    co_await environment_.loop.SleepFor(seconds(1));
  }
}

Task<> ImageBuilder::Supply(ProviderName provider) {
  while (true) {
    Duration pause = std::chrono::duration_cast<Duration>(random_.Between(0, 1) * kLongestPause);
    co_await environment_.loop.SleepFor(is_calm_ ? seconds(1) : pause);
    bool is_supplied = co_await HasReady(provider);
    if (is_calm_ && is_supplied) co_return;
    co_await Attempt(UploadOnce(provider));
  }
}

Task<bool> ImageBuilder::HasReady(ProviderName provider) {
  std::vector<store::StoredUpload> uploads = co_await store_.images.ListUploads(build_, provider);
  co_return std::ranges::any_of(
      uploads, [](const store::StoredUpload& upload) { return upload.record.state == ImageState::kReady; });
}

Task<> ImageBuilder::UploadOnce(ProviderName provider) {
  std::optional<zk::HeldLock> lock = co_await store_.images.TryLockUploads(build_, provider);
  if (!lock) co_return;  // of one that has vanished
  Task<> upload = UploadLocked(provider, *lock);
  co_await store_.tree.Holding(*lock, std::move(upload));
}

Task<> ImageBuilder::UploadLocked(ProviderName provider, zk::HeldLock lock) {
  co_await RemoveLeft(provider);
  ImageUpload record = UploadIn(ImageState::kUploading, environment_.loop.Now());
  Task<store::StoredUpload> create = store_.images.CreateUpload(build_, provider, std::move(record), lock);
  store::StoredUpload upload = co_await std::move(create);
  drivers::FakeCloud& cloud = *environment_.clouds.all.Find(provider);
  const std::string external_id =
      cloud.UploadImage(upload.id.str(), {{"nodepool_provider_name", provider.value},
                                          {"nodepool_build_id", build_.build.value},
                                          {"nodepool_upload_id", upload.id.upload.value}});
  auto note = [external_id](ImageUpload& record) {
    record.external_id = external_id;
    return Change::kWrite;
  };
  co_await store_.images.Update(upload, lock, note);
  Outcome<> valid = co_await Attempt(Validate(upload));
  WallTime now = environment_.loop.Now();
  auto end = [&valid, now](ImageUpload& record) {
    record.state = valid ? ImageState::kReady : ImageState::kFailed;
    record.state_time = now;
    return Change::kWrite;
  };
  co_await store_.images.Update(upload, lock, end);
  if (!valid) co_await Remove(upload);
}

// What one that has vanished, or failed, has left.
Task<> ImageBuilder::RemoveLeft(ProviderName provider) {
  std::vector<store::StoredUpload> uploads = co_await store_.images.ListUploads(build_, provider);
  for (store::StoredUpload& upload : uploads) {
    if (upload.record.state != ImageState::kReady) co_await Remove(std::move(upload));
  }
}

Task<> ImageBuilder::Remove(store::StoredUpload upload) {
  drivers::FakeCloud& cloud = *environment_.clouds.all.Find(upload.id.provider);
  if (upload.record.external_id) co_await cloud.DeleteImage(*upload.record.external_id);
  co_await store_.images.RemoveUpload(upload.id);
}

Task<> ImageBuilder::Validate(store::StoredUpload upload) {
  const driver::ProviderConfig& provider = *environment_.scenario.providers.at(upload.id.provider);
  std::optional<LabelName> label = builder::ValidationLabelOf(provider, upload.id.build.image);
  if (!label) co_return;
  builder::Validation validation{upload.id, *upload.record.external_id, {"check", kTimeout}, *label, {}};
  validation.note = [](std::string) -> Task<> { co_return; };
  co_await builder::Validate(context_, log::Logger("sim.image_builder"), std::move(validation));
}

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
  // What the launcher makes of no event is not mended by reading everything again.
  options.intervals.unannounced_change = std::chrono::hours(24);
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
