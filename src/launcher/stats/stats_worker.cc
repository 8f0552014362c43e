#include "launcher/stats/stats_worker.h"

#include "driver/loading/configured.h"
#include "launcher/announced_providers.h"
#include "launcher/elected.h"
#include "launcher/stats/stats_config.h"
#include "launcher/stats/stats_health.h"
#include "launcher/stats/stats_metrics.h"

namespace nodepool::launcher {
namespace {

constexpr Duration kReportPause = std::chrono::seconds(1);
constexpr Duration kLocalPause = std::chrono::seconds(10);

}  // namespace

StatsWorker::StatsWorker(Context& context, const ProviderManager& providers)
    : context_(context),
      providers_(providers),
      logger_("nodepool.StatsWorker"),
      cluster_report_(
          context.loop, "nodes and pools", {}, [this] { return ReportClusterIfChanged(); }, logger_),
      local_report_(
          context.loop, "the configuration and providers", {.longest = kLocalPause},
          [this] { return ReportLocalGauges(); }, logger_),
      tasks_(context.loop, logger_) {}

StatsWorker::~StatsWorker() = default;

void StatsWorker::Start() {
  for (const auto& [id, node] : context_.caches.nodes.all()) counts_.Change(nullptr, &node.record);
  for (const auto& [id, request] : context_.caches.requests.all()) counts_.Change(nullptr, &request.record);
  subscriptions_.push_back(
      context_.caches.nodes.OnChange([this](const NodeId&, const store::StoredNode* before,
                                            const store::StoredNode* after) { NodeChanged(before, after); }));
  subscriptions_.push_back(context_.caches.requests.OnChange(
      [this](const RequestId&, const store::StoredRequest* before, const store::StoredRequest* after) {
        counts_.Change(before ? &before->record : nullptr, after ? &after->record : nullptr);
      }));
  subscriptions_.push_back(context_.caches.components.OnChange(
      [this](const std::string&, const Component*, const Component*) { cluster_report_.Wake(); }));
  tasks_.Spawn("local statistics", local_report_.Run());
  if (context_.metrics.pushed() != nullptr) {
    tasks_.Spawn("contend for the reporting of statistics",
                 LeadWhenElected(
                     context_.store.components.StatsElection(Contender(context_)), [this] { return Lead(); },
                     "Reporting statistics", logger_));
  } else {
    log::Logger("nodepool.NodePool").Info("Statsd not configured");
  }
}

Task<> StatsWorker::Stop() {
  subscriptions_.clear();
  co_await tasks_.Stop();
}

void StatsWorker::NodeChanged(const store::StoredNode* before, const store::StoredNode* after) {
  bool is_lock_only =
      before != nullptr && after != nullptr && before->revision.mzxid == after->revision.mzxid;
  if (is_lock_only) return;
  counts_.Change(before ? &before->record : nullptr, after ? &after->record : nullptr);
  nodes_changed_ = true;
  cluster_report_.Wake();
}

// Nothing is reported before the first change of a node (launcher.md 27.3). What pools offer is reported
// along with it; a change of that alone is reported only when something reported before is gone.
Task<> StatsWorker::Lead() {
  logger_.Info("Won stats reporter election");
  cluster_gauges_ = {};
  nodes_changed_ = false;
  co_await cluster_report_.Run();
}

SteadyTime StatsWorker::ReportClusterIfChanged() {
  SteadyTime now = context_.loop.SteadyNow();
  if (now < next_cluster_report_) return next_cluster_report_;
  if (!context_.caches.SyncedOrWake(cluster_report_)) return SteadyTime::max();
  metrics::GaugeReport report = [this](metrics::Sink& to) { ReportCluster(to); };
  if (!nodes_changed_) {
    if (now < next_comparison_) return next_comparison_;
    next_comparison_ = now + kReportPause;
    if (!cluster_gauges_.LacksAny(report)) return SteadyTime::max();
  }
  nodes_changed_ = false;
  next_cluster_report_ = now + kReportPause;
  cluster_gauges_.Report(*context_.metrics.pushed(), report);
  return SteadyTime::max();
}

SteadyTime StatsWorker::ReportLocalGauges() {
  CountMalformed();
  if (context_.metrics.pushed() != nullptr) {
    local_gauges_.Report(*context_.metrics.pushed(), [this](metrics::Sink& to) { ReportLocal(to); });
  }
  return SteadyTime::max();
}

void StatsWorker::CountMalformed() {
  for (const store::Cache* cache : context_.caches.all()) {
    std::string kind(cache->kind());
    std::uint64_t known = std::exchange(malformed_[kind], cache->malformed_count());
    auto more = static_cast<std::int64_t>(cache->malformed_count() - known);
    if (more > 0) context_.metrics.Add(stats::kMalformed, {kind}, more);
  }
}

void StatsWorker::ReportCluster(metrics::Sink& to) const {
  counts_.Report(to, context_.caches.components.Pools());
}

void StatsWorker::ReportLocal(metrics::Sink& to) const {
  ReportConfig(*context_.config, to);
  ReportHealth(driver::ConfiguredBy(*context_.config), context_.caches.components.all(),
               context_.caches.nodes, context_.caches.images, context_.loop.Now(), to);
  for (const ProviderName& name : providers_.Managed()) {
    to.Set(stats::kProviderUp, {name.value}, providers_.HealthOf(name).is_up ? 1 : 0);
    to.Set(stats::kProviderPaused, {name.value}, context_.caches.pauses.Find(name) != nullptr ? 1 : 0);
    to.Set(stats::kBreakersOpen, {name.value},
           static_cast<double>(OpenBreakersOf(context_.caches.breakers, name).size()));
  }
  for (const char* queue : {"client.connection_queue", "node_cache.event_queue", "node_cache.playback_queue",
                            "request_cache.event_queue", "request_cache.playback_queue",
                            "image_cache.event_queue", "image_cache.playback_queue"}) {
    to.Set(stats::kQueueLength, {context_.hostname, queue}, 0);
  }
}

void StatsWorker::Report(metrics::Sink& to) const {
  ReportCluster(to);
  ReportLocal(to);
}

}  // namespace nodepool::launcher
