#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/text.h"
#include "listing/status.h"
#include "model/json.h"

namespace nodepool::listing {

namespace {

using Severity = Problem::Severity;

constexpr Duration kLongDeletion = std::chrono::minutes(10);

// What the launchers that have the provider say of it.
struct Failing {
  std::set<std::string> launchers;
  const ProviderReport* first = nullptr;  // that failed
  bool is_usable = false;                 // by another launcher
};

std::vector<Problem::Place> AllOf(const ProviderName& provider) { return {{.provider = provider}}; }

void AddFailing(Problems& out, const StatusRecords& records) {
  std::map<ProviderName, Failing> failing;
  for (const auto& [path, component] : records.caches.components.all()) {
    for (const auto& [provider, report] : component.providers) {
      Failing& entry = failing[provider];
      entry.is_usable |= report.state == ProviderState::kUp;
      if (report.state != ProviderState::kFailing) continue;
      entry.launchers.insert(component.hostname);
      if (entry.first == nullptr || report.since < entry.first->since) entry.first = &report;
    }
  }
  for (const auto& [provider, entry] : failing) {
    if (entry.first == nullptr) continue;
    out.push_back(
        {.kind = "provider-failing",
         .name = provider.value,
         .since = entry.first->since,
         .subject = {"providers", provider.value},
         .text = fmt::format("The launcher on {} cannot use provider {}: {}",
                             fmt::join(entry.launchers, ", "), provider, InOneLine(entry.first->fault)),
         .remedy = "Check its address and credentials (clouds.yaml): nodepool config-validate --online",
         .stops = entry.is_usable ? std::vector<Problem::Place>() : AllOf(provider)});
  }
}

void AddNotices(Problems& out, const StatusRecords& records) {
  std::set<std::string> known;
  for (const auto& [path, component] : records.caches.components.all()) {
    for (const auto& [provider, report] : component.providers) {
      for (const std::string& notice : report.notices) {
        Problem problem{.kind = "provider-notice",
                        .name = fmt::format("{}/{}", provider, Excerpt(notice)),
                        .subject = {"providers", provider.value},
                        .text = fmt::format("Provider {}: {}", provider, InOneLine(notice)),
                        .remedy = "Start what does not answer, or take it out of nodepool.yaml"};
        if (known.insert(problem.text).second) out.push_back(std::move(problem));
      }
    }
  }
}

std::set<ProviderName> Served(const StatusRecords& records) {
  std::set<ProviderName> served;
  for (const auto& [path, component] : records.caches.components.all()) {
    if (component.kind == ComponentKind::kPool) served.insert(component.provider_name);
    for (const auto& [provider, report] : component.providers) served.insert(provider);
  }
  return served;
}

// Where the launchers ran that made the nodes, without those hosts on which a launcher runs.
std::set<std::string> HostsGone(const std::set<NodeId>& nodes, const StatusRecords& records) {
  std::set<std::string> hosts;
  for (const NodeId& id : nodes) {
    std::string host(HostOf(std::string_view(records.caches.nodes.Find(id)->record.launcher.value_or(""))));
    if (!host.empty()) hosts.insert(std::move(host));
  }
  std::erase_if(hosts, [&](const std::string& host) {
    return std::ranges::any_of(records.caches.components.all(), [&](const auto& entry) {
      const std::string& name = entry.second.hostname;
      return entry.second.kind == ComponentKind::kLauncher && (host == name || host.starts_with(name + "."));
    });
  });
  return hosts;
}

void AddUnserved(Problems& out, const StatusRecords& records) {
  // Without any launcher that is one problem, not one of each provider.
  if (!Runs(records, ComponentKind::kLauncher)) return;
  std::set<ProviderName> providers;
  for (const auto& [provider, driver] : records.configured.drivers) providers.insert(provider);
  for (const ProviderName& provider : records.caches.nodes.ProvidersWithNodes()) providers.insert(provider);
  std::set<ProviderName> served = Served(records);
  for (const ProviderName& provider : providers) {
    if (provider.empty() || served.contains(provider)) continue;
    const std::set<NodeId>& nodes = records.caches.nodes.OfProvider(provider);
    std::set<std::string> gone = HostsGone(nodes, records);
    std::string left = nodes.empty() ? "" : fmt::format(", which has {}", Counted(nodes.size(), "node"));
    if (gone.empty()) {
      out.push_back({.kind = "provider-unserved",
                     .name = provider.value,
                     .subject = {"providers", provider.value},
                     .text = fmt::format("No launcher serves provider {}{}", provider, left),
                     .remedy = "Start the launcher that has it, or take it out of nodepool.yaml",
                     .stops = AllOf(provider)});
    } else {
      out.push_back({.kind = "launcher-gone",
                     .name = provider.value,
                     .subject = {"components"},
                     .text = fmt::format("The launcher on {} is gone: nobody serves provider {}{}",
                                         fmt::join(gone, ", "), provider, left),
                     .remedy = "systemctl start nodepool-launcher there; its log says why it ended",
                     .stops = AllOf(provider)});
    }
  }
}

void AddPaused(Problems& out, const StatusRecords& records) {
  for (const auto& [provider, pause] : records.caches.pauses.all()) {
    out.push_back({.kind = "provider-paused",
                   .name = provider.value,
                   .severity = Severity::kWait,
                   .since = pause.paused_time,
                   .subject = {"providers", provider.value},
                   .text = fmt::format("Provider {} is {} by {}", provider,
                                       pause.is_drained ? "drained" : "paused", WhoAndWhy(pause)),
                   .remedy = fmt::format("nodepool provider-unpause {} ends it", provider),
                   .stops = AllOf(provider)});
  }
}

// What helps, by what most launches failed for.
std::string RemedyFor(const Breaker& breaker) {
  switch (ParseFailureKind(breaker.kind.value_or("")).value_or(FailureKind::kOther)) {
    case FailureKind::kAuthentication:
      return "Check the provider's credentials and what they permit";
    case FailureKind::kQuota:
      return "Raise the quota in the cloud, or give nodes back";
    case FailureKind::kCapacity:
      return "Add another size or zone, or wait until the cloud has machines again";
    case FailureKind::kBoot:
      return "Boot a machine of it by hand; the launcher's log has the cloud's errors";
    case FailureKind::kKeyScan:
      return "Check network, security groups, boot-timeout, and that its image starts an SSH server";
    case FailureKind::kImage:
      return "Check its image: nodepool image-status";
    case FailureKind::kOther:
      break;
  }
  return "The launcher's log says what the cloud answers";
}

void AddBreakers(Problems& out, const StatusRecords& records) {
  for (const auto& [key, breaker] : records.caches.breakers.all()) {
    std::string name = key.provider.value;
    for (const std::string& part : {key.pool.value, key.label.value}) {
      if (!part.empty()) name += "/" + part;
    }
    out.push_back({.kind = "breaker-open",
                   .name = std::move(name),
                   .since = breaker.opened,
                   .subject = {"providers", key.provider.value},
                   .text = fmt::format("The breaker of {} is open: {}", ToString(key), EvidenceOf(breaker)),
                   .remedy = RemedyFor(breaker) + "; it is tested by itself, and closes when a launch works",
                   .stops = {{key.provider, key.pool, key.label}}});
  }
}

// "8 of 8 instances", of what there is least of; empty if nothing is limited.
std::string FullestOf(const Resources& limit, const Resources& used) {
  std::string fullest;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [resource, most] : limit) {
    auto found = used.find(resource);
    double amount = found == used.end() ? 0 : found->second;
    double free = most > 0 ? (most - amount) / most : 0;
    if (free >= least || most == std::numeric_limits<double>::infinity()) continue;
    least = free;
    fullest = fmt::format("{} of {} {}", amount, most, resource);
  }
  return fullest;
}

const ProviderReport* ReportOf(const StatusRecords& records, const ProviderName& provider) {
  for (const auto& [path, component] : records.caches.components.all()) {
    auto report = component.providers.find(provider);
    if (report != component.providers.end()) return &report->second;
  }
  return nullptr;
}

// A pool announces that a request that it has accepted waits for capacity.
void AddFullPools(Problems& out, const StatusRecords& records) {
  std::set<PoolKey> full;
  for (const auto& [path, component] : records.caches.components.all()) {
    if (component.is_paused) full.insert({component.provider_name, component.name.value_or(PoolName())});
  }
  for (const PoolKey& pool : full) {
    const ProviderReport* report = ReportOf(records, pool.provider);
    if (report != nullptr && report->state != ProviderState::kUp) continue;
    auto configured = records.configured.pools.find(pool);
    std::vector<std::string> uses;
    if (configured != records.configured.pools.end()) {
      if (std::string use = FullestOf(configured->second, records.caches.nodes.UsedBy(pool)); !use.empty())
        uses.push_back(use + " of the pool");
    }
    const Resources& used = records.caches.nodes.UsedBy(pool.provider);
    if (report != nullptr) {
      if (std::string use = FullestOf(report->limit, used); !use.empty())
        uses.push_back(use + " of the provider");
    }
    out.push_back(
        {.kind = "quota-full",
         .name = fmt::format("{}/{}", pool.provider, pool.pool),
         .severity = Severity::kWait,
         .subject = {"providers", pool.provider.value},
         .text = fmt::format("Provider {} has no capacity for requests of pool {}{}{}", pool.provider,
                             pool.pool, uses.empty() ? "" : ": in use are ", Join(uses, ", ")),
         .remedy = "Raise the quota or the pool's limits, or give nodes back",
         .stops = {{.provider = pool.provider, .pool = pool.pool}}});
  }
}

void AddSlowDeletions(Problems& out, const StatusRecords& records) {
  struct Slow {
    std::size_t count = 0;
    WallTime since = WallTime::max();
  };
  std::map<ProviderName, Slow> all;
  for (const NodeId& id : records.caches.nodes.InState(NodeState::kDeleting)) {
    const Node& node = records.caches.nodes.Find(id)->record;
    if (records.now - node.state_time <= kLongDeletion) continue;
    Slow& slow = all[node.provider];
    ++slow.count;
    slow.since = std::min(slow.since, node.state_time);
  }
  for (const auto& [provider, slow] : all) {
    out.push_back({.kind = "slow-deletion",
                   .name = provider.value,
                   .severity = Severity::kWait,
                   .since = slow.since,
                   .subject = {"providers", provider.value},
                   .text = fmt::format("Provider {} has been deleting {} for more than 10 minutes", provider,
                                       Counted(slow.count, "node")),
                   .remedy = "nodepool list shows them; the launcher's log says what the cloud answers"});
  }
}

}  // namespace

void FindProviderProblems(Problems& out, const StatusRecords& records) {
  for (auto* add :
       {&AddFailing, &AddNotices, &AddUnserved, &AddBreakers, &AddFullPools, &AddPaused, &AddSlowDeletions})
    add(out, records);
}

namespace {

void AddMissingDaemons(Problems& out, const StatusRecords& records) {
  if (!Runs(records, ComponentKind::kLauncher)) {
    out.push_back({.kind = "no-launcher",
                   .subject = {"components"},
                   .text = "No launcher runs: nobody takes requests or deletes nodes",
                   .remedy = "systemctl start nodepool-launcher; if it ends at once, its log says why",
                   .stops = {Problem::Place()}});
  }
  if (!Runs(records, ComponentKind::kBuilder) && !records.configured.images.empty()) {
    out.push_back({.kind = "no-builder",
                   .subject = {"components"},
                   .text = "No builder runs: no image is built or uploaded",
                   .remedy = "systemctl start nodepool-builder; if it ends at once, its log says why"});
  }
}

void AddRejectedConfigurations(Problems& out, const StatusRecords& records) {
  for (const auto& [path, component] : records.caches.components.all()) {
    const auto& rejected = component.configuration_rejected;
    if (!rejected) continue;
    out.push_back(
        {.kind = "configuration-rejected",
         .name = fmt::format("{}/{}", ToString(component.kind), component.hostname),
         .since = rejected->since,
         .subject = {"components", path},
         .text = fmt::format("The {} on {} keeps its previous configuration: {}", ToString(component.kind),
                             component.hostname, InOneLine(rejected->error)),
         .remedy = "Correct the file (nodepool config-validate); it is read again by itself"});
  }
}

}  // namespace

void FindDaemonProblems(Problems& out, const StatusRecords& records) {
  AddMissingDaemons(out, records);
  AddRejectedConfigurations(out, records);
}

namespace {

constexpr std::size_t kShownFault = 400;
constexpr Duration kLostShown = std::chrono::hours(1);

// What services and nodes say, in one line.
std::string Shown(const std::string& text) { return Excerpt(InOneLine(text), kShownFault); }

void AddFault(Problems& out, const std::string& name, const RunnerSetRecord& set) {
  if (set.fault.empty()) return;
  out.push_back({.kind = "runners-fault",
                 .name = name,
                 .since = set.since,
                 .subject = {"runners", name},
                 .text = fmt::format("The runners {} do not work: {}", Visible(name), Shown(set.fault)),
                 .remedy = set.remedy.empty() ? "The log of nodepool-runners says more" : Shown(set.remedy)});
}

void AddWarnings(Problems& out, const std::string& name, const RunnerSetRecord& set) {
  if (set.warnings.empty()) return;
  out.push_back({.kind = "runners-warning",
                 .name = name,
                 .severity = Problem::Severity::kWait,
                 .subject = {"runners", name},
                 .text = fmt::format("The runners {}: {}", Visible(name), Shown(Join(set.warnings, "; "))),
                 .remedy = "Correct the image or the configuration of the set"});
}

void AddLost(Problems& out, const std::string& name, const RunnerSetRecord& set, WallTime now) {
  for (const LostJob& lost : set.lost) {
    if (!lost.time || now - *lost.time > kLostShown) continue;
    out.push_back({.kind = "runner-job-lost",
                   .name = name + "/" + lost.node.value,
                   .severity = Problem::Severity::kWait,
                   .since = lost.time,
                   .subject = {"runner_jobs", {}},
                   .text = fmt::format("The job {} was lost on node {}: {}", DescribeJob(lost.job),
                                       Visible(lost.node.value), Shown(lost.reason)),
                   .remedy = "Run it again in the service, which fails it after some minutes and does not "
                             "repeat it"});
  }
}

}  // namespace

void FindRunnerProblems(Problems& out, const StatusRecords& records) {
  for (const auto& [key, set] : records.caches.runners.sets()) {
    AddFault(out, key.str(), set);
    AddWarnings(out, key.str(), set);
    AddLost(out, key.str(), set, records.now);
  }
}

}  // namespace nodepool::listing
