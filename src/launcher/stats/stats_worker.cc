#include "launcher/stats/stats_worker.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "driver/loading/config_follower.h"
#include "launcher/elected.h"
#include "launcher/provider_manager.h"
#include "launcher/stats/stats_metrics.h"
#include "listing/image_listing.h"
#include "listing/provider_listing.h"

namespace nodepool::launcher {

void ReportConfig(const driver::LoadedConfig& config, metrics::Sink& to) {
  for (const auto& [name, provider] : config.providers) {
    double servers = 0;
    for (const auto& [pool_name, pool] : provider->pools) servers += pool->max_servers;
    to.Set(stats::kMaxServers, {name.value}, servers);
  }
  constexpr double kUnlimited = std::numeric_limits<double>::infinity();
  for (const auto& [tenant, configured] : config.common.tenant_limits) {
    Resources limits = {{"cores", kUnlimited}, {"instances", kUnlimited}, {"ram", kUnlimited}};
    for (const auto& [resource, limit] : configured) limits[resource] = limit;
    for (const auto& [resource, limit] : limits) to.Set(stats::kTenantLimit, {tenant, resource}, limit);
  }
}

namespace {

void ReportImage(const ImageName& name, const listing::ConfiguredImage& configured,
                 const listing::ImageHealth& health, metrics::Sink& to) {
  to.Set(stats::kImageBuildFailed, {name.value}, health.failed != nullptr ? 1 : 0);
  to.Set(stats::kImageTooOld, {name.value}, health.is_old ? 1 : 0);
  for (const auto& [provider, labels] : configured.labels) {
    bool is_missing = std::ranges::find(health.missing, provider) != health.missing.end();
    to.Set(stats::kImageUploadMissing, {name.value, provider.value}, is_missing ? 1 : 0);
  }
}

}  // namespace

void ReportHealth(const listing::Configured& configured, const std::map<std::string, Component>& components,
                  const store::NodeCache& nodes, const store::ImageCache& images, WallTime now,
                  metrics::Sink& to) {
  auto shortages = listing::ShortagesOf(configured, components, nodes);
  for (const auto& [label, min_ready] : configured.labels) {
    if (min_ready <= 0) continue;
    auto shortage = shortages.find(label);
    to.Set(stats::kLabelShortage, {label.value}, shortage == shortages.end() ? 0 : shortage->second.missing);
  }
  for (const auto& [image, settings] : configured.images)
    ReportImage(image, settings, listing::HealthOf(images, image, &settings, now), to);
  for (const auto& [path, component] : components) {
    if (component.kind == ComponentKind::kPool) continue;
    const auto& rejected = component.configuration_rejected;
    to.Set(stats::kConfigurationRejected, {std::string(ToString(component.kind)), component.hostname},
           rejected ? ToSeconds(rejected->since) : 0);
  }
}

namespace {

constexpr double kMillion = 1e6;

// The order of launcher.md 27.3.
constexpr NodeState kOrder[] = {NodeState::kBuilding, NodeState::kTesting, NodeState::kReady,
                                NodeState::kInUse,    NodeState::kUsed,    NodeState::kHold,
                                NodeState::kDeleting, NodeState::kFailed,  NodeState::kInit,
                                NodeState::kAborted,  NodeState::kDeleted};

std::size_t IndexOf(NodeState state) { return static_cast<std::size_t>(state); }

template <class Key, class Counts>
void CountUnder(std::map<Key, Counts>& counts, const Key& key, NodeState state, int by) {
  Counts& of_key = counts[key];
  of_key[IndexOf(state)] += by;
  if (std::all_of(of_key.begin(), of_key.end(), [](int count) { return count == 0; })) counts.erase(key);
}

using Offers = std::map<PoolKey, std::vector<std::set<LabelName>>>;

// Whether one registration of the pool offers all the labels.
bool Offer(const std::vector<std::set<LabelName>>& offered, const std::vector<LabelName>& wanted) {
  return std::any_of(offered.begin(), offered.end(), [&](const std::set<LabelName>& labels) {
    return std::all_of(wanted.begin(), wanted.end(),
                       [&](const LabelName& label) { return labels.contains(label); });
  });
}

}  // namespace

void NodeCounts::Count(const Node& node, int by) {
  if (!node.state) return;
  all_[IndexOf(*node.state)] += by;
  if (!node.provider.empty()) CountUnder(by_provider_, node.provider, *node.state, by);
  for (const LabelName& label : node.type) CountUnder(by_label_, label, *node.state, by);
  if (node.hourly_price && !node.provider.empty() && !node.type.empty()) {
    std::pair key(node.provider, node.type.front());
    std::int64_t& cost = hourly_costs_[key];
    cost += by * std::llround(*node.hourly_price * kMillion);
    if (cost == 0) hourly_costs_.erase(key);
  }
}

void NodeCounts::Change(const Node* before, const Node* after) {
  if (before != nullptr) Count(*before, -1);
  if (after != nullptr) Count(*after, 1);
}

void NodeCounts::Change(const NodeRequest* before, const NodeRequest* after) {
  if (before != nullptr) {
    auto it = requests_.find(before->node_types);
    if (it != requests_.end() && --it->second == 0) requests_.erase(it);
  }
  if (after != nullptr) ++requests_[after->node_types];
}

void NodeCounts::Report(metrics::Sink& to, const std::vector<const Component*>& pools) const {
  std::map<ProviderName, ByState> providers = by_provider_;
  std::map<LabelName, ByState> labels = by_label_;
  Offers offers;
  // Those that have no nodes now are reported as well, with 0.
  for (const Component* pool : pools) {
    providers.try_emplace(pool->provider_name);
    for (const LabelName& label : pool->supported_labels) labels.try_emplace(label);
    if (pool->name) {
      offers[{pool->provider_name, *pool->name}].emplace_back(pool->supported_labels.begin(),
                                                              pool->supported_labels.end());
    }
  }
  for (NodeState state : kOrder) to.Set(stats::kNodes, {std::string(ToString(state))}, all_[IndexOf(state)]);
  for (const auto& [provider, counts] : providers) {
    for (NodeState state : kOrder) {
      to.Set(stats::kProviderNodes, {provider.value, std::string(ToString(state))}, counts[IndexOf(state)]);
    }
  }
  for (const auto& [label, counts] : labels) {
    for (NodeState state : kOrder) {
      to.Set(stats::kLabelNodes, {label.value, std::string(ToString(state))}, counts[IndexOf(state)]);
    }
  }
  for (const auto& [key, millionths] : hourly_costs_) {
    to.Set(stats::kHourlyCost, {key.first.value, key.second.value},
           static_cast<double>(millionths) / kMillion);
  }
  for (const auto& [pool, offered] : offers) {
    int addressable = 0;
    for (const auto& [wanted, count] : requests_) {
      if (Offer(offered, wanted)) addressable += count;
    }
    to.Set(stats::kAddressableRequests, {pool.provider.value, pool.pool.value}, addressable);
  }
}

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
