#include "builder/builder.h"

#include "async/task_group.h"
#include "base/version.h"
#include "builder/context.h"
#include "builder/metrics.h"

namespace nodepool::builder {

namespace {

// The values of the state gauges.
constexpr int kIdle = 0;
constexpr int kBuilding = 1;
constexpr int kUploading = 2;
constexpr int kPaused = 3;

}  // namespace

StatsWorker::StatsWorker(Context& context, const BuildWorker& builds, const UploadWorker& uploads)
    : context_(context),
      builds_(builds),
      uploads_(uploads),
      tasks_(context.loop, log::Logger("nodepool.builder.Stats")) {}

StatsWorker::~StatsWorker() = default;

void StatsWorker::Start() {
  if (context_.metrics.pushed() != nullptr) tasks_.Spawn("report gauges", Run());
}

Task<> StatsWorker::Stop() { co_await tasks_.Stop(); }

Task<> StatsWorker::Run() {
  while (true) {
    if (context_.is_connected()) {
      gauges_.Report(*context_.metrics.pushed(), [this](metrics::Sink& to) { Report(to); });
    }
    co_await context_.loop.SleepFor(context_.intervals.cleanup);
  }
}

bool StatsWorker::IsRequestPending(const ImageName& image) const {
  return context_.caches.images.build_requests().contains(image) &&
         !context_.caches.images.IsBuildLocked(image);
}

void StatsWorker::Report(metrics::Sink& to) const {
  int requests = 0;
  for (const ImageName& image : context_.caches.images.images()) {
    ReportImage(image, to);
    if (IsRequestPending(image)) ++requests;
  }
  const std::string& fqdn = context_.identity.fqdn;
  to.Set(stats::kAllBuildRequests, {}, requests);
  to.Set(stats::kCurrentBuilds, {fqdn}, static_cast<double>(builds_.building().size()));
  to.Set(stats::kCurrentUploads, {fqdn}, static_cast<double>(uploads_.uploading().size()));
  to.Set(stats::kBuildWorkers, {fqdn}, context_.most_builds());
  to.Set(stats::kUploadWorkers, {fqdn}, context_.most_uploads());
}

void StatsWorker::ReportImage(const ImageName& image, metrics::Sink& to) const {
  const std::string& fqdn = context_.identity.fqdn;
  to.Set(stats::kBuildRequests, {image.value}, IsRequestPending(image) ? 1 : 0);
  std::optional<sched::ImageSpec> spec = SpecOf(*context_.config, image);
  if (!spec) return;
  bool is_paused = spec->is_paused || context_.caches.images.paused().contains(image);
  bool is_building = builds_.building().contains(image);
  to.Set(stats::kBuildState, {fqdn, image.value}, is_building ? kBuilding : is_paused ? kPaused : kIdle);
  for (const auto& [provider, part] : spec->providers) {
    bool is_uploading = uploads_.uploading().contains({image, provider});
    int state = is_uploading ? kUploading : part.is_paused ? kPaused : kIdle;
    to.Set(stats::kUploadState, {fqdn, image.value, provider.value}, state);
  }
}

Builder::Builder(Loop& loop, Random& random, BlockingPool& blocking_pool, metrics::Metrics& metrics,
                 zk::Client& client, driver::Registry& drivers, process::Runner& runner, LocalFiles& files,
                 std::shared_ptr<const driver::LoadedConfig> config, Options options)
    : logger_("nodepool.builder.NodePoolBuilder"),
      store_(loop, client, random),
      caches_(loop, client),
      context_{std::move(config),
               loop,
               random,
               metrics,
               store_,
               caches_,
               runner,
               files,
               std::move(options.environment),
               std::move(options.identity),
               options.intervals,
               options.workers,
               {},
               [this] { Wake(); }},
      entry_(loop, client, Announcement()),
      providers_(context_, blocking_pool, drivers),
      builds_(context_),
      uploads_(context_, providers_),
      cleanup_(context_, providers_, uploads_),
      stats_(context_, builds_, uploads_),
      finishes_work_(options.finishes_work) {
  loops_.Add("builds", builds_);
  loops_.Add("uploads", uploads_);
  loops_.Add("clean-up", cleanup_);
  loops_.Add("statistics", stats_);
}

Builder::~Builder() = default;

Component Builder::Announcement() const {
  Component component;
  component.kind = ComponentKind::kBuilder;
  component.hostname = context_.identity.hostname;
  component.state = is_serving_ ? ComponentState::kRunning : ComponentState::kStopped;
  component.version = Version();
  component.configuration_rejected = rejected_;
  return component;
}

Task<> Builder::Start() {
  logger_.Info("Nodepool builder {} starting, builder id {}", Version(), context_.identity.builder_id);
  session_ = store_.tree.client().OnSession([this](zk::SessionState state) { SessionChanged(state); });
  image_watch_ = caches_.images.OnChange([this](const ImageName&) { Wake(); });
  caches_.images.Start();
  co_await entry_.Register();
  co_await caches_.WaitSynced();
  co_await RefreshLocal(context_);
  providers_.Configure(*context_.config);
  is_serving_ = true;
  entry_.Update(Announcement());  // D-09
  loops_.Start();
  logger_.Info("Managing {} images", context_.config->common.diskimages.size());
}

void Builder::Wake() {
  builds_.Wake();
  uploads_.Wake();
  cleanup_.Wake();
}

void Builder::ConfigurationRejected(std::optional<RejectedConfiguration> rejected) {
  rejected_ = std::move(rejected);
  entry_.Update(Announcement());
}

void Builder::Reconfigure(std::shared_ptr<const driver::LoadedConfig> config) {
  if (!config->common.images_dir) {
    logger_.Error("The new configuration names no images-dir; the previous one stays in force");
    ConfigurationRejected(
        RejectedConfiguration{context_.loop.Now(), config->common.path + ": images-dir is missing"});
    return;
  }
  if (rejected_) ConfigurationRejected(std::nullopt);
  context_.config = std::move(config);
  providers_.Configure(*context_.config);
  Wake();
}

void Builder::SessionChanged(zk::SessionState state) {
  if (state == zk::SessionState::kSuspended) logger_.Info("ZooKeeper suspended. Waiting");
  if (state == zk::SessionState::kConnected) {
    logger_.Info("ZooKeeper available. Resuming");
    Wake();
  }
  if (state != zk::SessionState::kLost) return;
  logger_.Warning("The ZooKeeper session is lost: dropping all work done under its locks");
  loops_.SessionLost();
}

// Begins nothing new; clean-up and statistics continue.
Task<> Builder::FinishWork() {
  co_await builds_.StopDeciding();
  co_await uploads_.StopDeciding();
  logger_.Info("Stopping once what runs has ended (builds: {}, uploads: {}); a second signal ends it at once",
               builds_.building().size(), uploads_.uploading().size());
  co_await builds_.Join();
  co_await uploads_.Join();
}

Task<> Builder::Stop() {
  if (!std::exchange(is_stopping_, true)) {
    if (finishes_work_) co_await FinishWork();
    logger_.Info("Stopping");
  }
  session_.Reset();
  image_watch_.Reset();
  SteadyTime deadline = context_.loop.SteadyNow() + context_.intervals.graceful_stop;
  StopSteps steps(context_.loop, logger_, deadline);
  co_await loops_.Stop(steps);
  co_await steps.Do("stopping providers", providers_.Stop());
  co_await steps.Do("removing the announcement", entry_.Unregister());
  co_await caches_.Stop();
}

}  // namespace nodepool::builder
