#include "builder/stats_worker.h"

#include "builder/stats_metrics.h"
#include "builder/view.h"

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

}  // namespace nodepool::builder
