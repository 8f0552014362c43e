#include "listing/provider_listing.h"

#include <fmt/format.h>

#include <set>

#include "base/text.h"
#include "listing/image_listing.h"
#include "model/json.h"

namespace nodepool::listing {

namespace {

int& GroupOf(NodeCounts& counts, NodeState state) {
  switch (state) {
    case NodeState::kReady:
      return counts.ready;
    case NodeState::kInit:
    case NodeState::kBuilding:
    case NodeState::kTesting:
      return counts.building;
    case NodeState::kInUse:
      return counts.in_use;
    case NodeState::kHold:
      return counts.held;
    case NodeState::kUsed:
    case NodeState::kDeleting:
    case NodeState::kDeleted:
    case NodeState::kFailed:
    case NodeState::kAborted:
      break;
  }
  return counts.ending;
}

}  // namespace

void NodeCounts::Add(std::optional<NodeState> state) {
  if (state) ++GroupOf(*this, *state);
}

void AppendCountColumns(std::vector<Column>& columns) {
  columns.insert(columns.end(), {{.key = "ready", .title = "Ready", .fit = {Importance::kHigh}},
                                 {.key = "building", .title = "Building"},
                                 {.key = "in_use", .title = "In Use", .fit = {Importance::kHigh}},
                                 {.key = "held", .title = "Held"},
                                 {.key = "ending", .title = "Ending", .fit = {Importance::kLow}}});
}

void AppendCounts(std::vector<Cell>& row, const NodeCounts& counts) {
  for (int count : {counts.ready, counts.building, counts.in_use, counts.held, counts.ending})
    row.emplace_back(count);
}

std::map<LabelName, std::vector<std::string>> FaultsOfLabels(
    const std::map<std::string, Component>& components) {
  std::map<LabelName, std::vector<std::string>> faults;
  std::set<LabelName> available;
  for (const auto& [path, component] : components) {
    for (const LabelName& label : component.supported_labels) {
      auto fault = component.label_faults.find(label);
      if (fault == component.label_faults.end()) {
        available.insert(label);
      } else {
        faults[label].push_back(fmt::format("{} {}: {}", component.provider_name,
                                            component.name.value_or(PoolName()), fault->second));
      }
    }
  }
  for (const LabelName& label : available) faults.erase(label);
  return faults;
}

std::map<LabelName, LabelShortage> ShortagesOf(const Configured& configured,
                                               const std::map<std::string, Component>& components,
                                               const store::NodeCache& nodes) {
  std::map<LabelName, LabelShortage> shortages;
  for (const auto& [path, component] : components) {
    for (const auto& [label, stock] : component.shortages) {
      auto settings = configured.labels.find(label);
      if (settings == configured.labels.end()) continue;
      int missing = settings->second - static_cast<int>(nodes.FreeCount(label));
      auto known = shortages.find(label);
      bool is_older = known == shortages.end() || stock.since < known->second.since;
      if (missing > 0 && is_older) shortages[label] = {missing, stock.since, stock.why};
    }
  }
  return shortages;
}

namespace {

namespace json = boost::json;

struct LabelUse {
  std::set<std::string> pools;
  std::set<ProviderName> providers;
  NodeCounts nodes;
  int waiting = 0;  // requests
};

std::map<LabelName, LabelUse> UseOfLabels(const std::map<std::string, Component>& components,
                                          const store::NodeCache& nodes,
                                          const store::RequestCache& requests) {
  std::map<LabelName, LabelUse> uses;
  for (const auto& [path, component] : components) {
    if (component.kind != ComponentKind::kPool) continue;
    std::string pool = fmt::format("{} {}", component.provider_name, component.name.value_or(PoolName()));
    for (const LabelName& label : component.supported_labels) {
      uses[label].pools.insert(pool);
      uses[label].providers.insert(component.provider_name);
    }
  }
  for (const auto& [id, node] : nodes.all()) {
    for (const LabelName& label : node.record.type) uses[label].nodes.Add(node.record.state);
  }
  for (RequestState state : {RequestState::kRequested, RequestState::kPending}) {
    for (const RequestId& id : requests.InState(state)) {
      const std::vector<LabelName>& types = requests.Find(id)->record.node_types;
      for (const LabelName& label : std::set<LabelName>(types.begin(), types.end())) ++uses[label].waiting;
    }
  }
  return uses;
}

// What operators should know of the label's providers, "lab: 2 of 2 hosts do not answer: ...".
std::vector<std::string> NoticesOf(const LabelUse& use, const std::map<std::string, Component>& components) {
  std::set<std::string> notices;
  for (const auto& [path, component] : components) {
    for (const auto& [provider, report] : component.providers) {
      if (!use.providers.contains(provider)) continue;
      for (const std::string& notice : report.notices)
        notices.insert(fmt::format("{}: {}", provider, notice));
    }
  }
  return {notices.begin(), notices.end()};
}

}  // namespace

std::vector<Column> LabelColumns() {
  std::vector<Column> columns = {
      {.key = "label", .title = "Label", .kind = Kind::kLabel, .fit = {Importance::kAlways}},
      {.key = "min_ready", .title = "Min Ready", .fit = {Importance::kHigh}},
      {.key = "pools", .title = "Pools", .fit = {Importance::kMedium, 12}}};
  AppendCountColumns(columns);
  columns.push_back({.key = "waiting", .title = "Waiting", .fit = {Importance::kHigh}});
  columns.push_back({.key = "why", .title = "Why", .fit = {Importance::kHigh, 20}});
  return columns;
}

Listing ListLabels(const Configured& configured, const std::map<std::string, Component>& components,
                   const store::NodeCache& nodes, const store::RequestCache& requests,
                   const store::ImageCache& images, WallTime now) {
  std::map<LabelName, LabelUse> uses = UseOfLabels(components, nodes, requests);
  for (const auto& [label, min_ready] : configured.labels) uses[label];
  std::map<LabelName, std::vector<std::string>> missing = MissingImages(images, configured, now);
  std::map<LabelName, std::vector<std::string>> faults = FaultsOfLabels(components);
  std::map<LabelName, LabelShortage> shortages = ShortagesOf(configured, components, nodes);
  Listing listing{LabelColumns(), {}};
  for (const auto& [label, use] : uses) {
    auto settings = configured.labels.find(label);
    std::vector<std::string> why = missing[label];
    if (auto fault = faults.find(label); why.empty() && fault != faults.end()) why = fault->second;
    if (auto shortage = shortages.find(label); why.empty() && shortage != shortages.end())
      why.push_back(shortage->second.why);
    if (why.empty() && nodes.FreeCount(label) == 0) why = NoticesOf(use, components);
    if (use.pools.empty()) why.insert(why.begin(), "no pool offers it");
    std::vector<Cell>& row = listing.rows.emplace_back();
    row.emplace_back(label.value);
    row.push_back(settings == configured.labels.end() ? Cell() : Cell(settings->second));
    row.emplace_back(json::array(use.pools.begin(), use.pools.end()));
    AppendCounts(row, use.nodes);
    row.emplace_back(use.waiting);
    row.emplace_back(Join(why, "; "));
  }
  return listing;
}

namespace {

// What one launcher reports about a provider. Launchers of the Python implementation report only that they
// serve its pools.
struct Served {
  std::string launcher;
  const ProviderReport* report = nullptr;
};

std::map<ProviderName, std::vector<Served>> ByProvider(const std::map<std::string, Component>& components) {
  std::map<ProviderName, std::vector<Served>> providers;
  std::set<std::pair<ProviderName, std::string>> seen;
  for (const auto& [path, component] : components) {
    for (const auto& [name, report] : component.providers)
      providers[name].push_back({component.hostname, &report});
    bool is_silent = component.kind == ComponentKind::kPool && !component.locks_slots;
    if (is_silent && seen.emplace(component.provider_name, component.hostname).second)
      providers[component.provider_name].push_back({component.hostname});
  }
  return providers;
}

Resources Free(const Resources& limit, const Resources& used) {
  Resources free = limit;
  for (auto& [resource, amount] : free) {
    if (auto it = used.find(resource); it != used.end()) amount = ExactSum(amount, -it->second);
  }
  return free;
}

// `broken`: the open breaker of the whole provider.
std::vector<Cell> StateCells(const Served& served, const ProviderPause* pause, const Breaker* broken) {
  bool is_up = served.report == nullptr || served.report->state == ProviderState::kUp;
  if (pause != nullptr && is_up) {
    return {std::string(kPausedProvider), pause->paused_time ? Cell(ToSeconds(*pause->paused_time)) : Cell()};
  }
  if (served.launcher.empty()) return {std::string(kUnserved), nullptr};
  if (broken != nullptr && is_up) {
    return {std::string(ToString(ProviderState::kFailing)),
            broken->opened ? Cell(ToSeconds(*broken->opened)) : Cell()};
  }
  if (served.report == nullptr) return {std::string(ToString(ProviderState::kUp)), nullptr};
  return {std::string(ToString(served.report->state)), ToSeconds(served.report->since)};
}

// Each open breaker of the provider, a sentence each.
std::vector<std::string> BreakerTexts(const store::RecordCache<Breaker>& breakers,
                                      const ProviderName& provider) {
  std::vector<std::string> texts;
  const auto& all = breakers.all();
  for (auto it = all.lower_bound(BreakerKey{provider}); it != all.end() && it->first.provider == provider;
       ++it)
    texts.push_back(fmt::format("the breaker of {} is open: {}", PartOf(it->first), EvidenceOf(it->second)));
  return texts;
}

Cell WhyCell(const Served& served, const ProviderPause* pause, std::vector<std::string> breakers) {
  bool is_at_fault = served.report != nullptr && !served.report->fault.empty();
  if (pause != nullptr && !is_at_fault) {
    return Cell(fmt::format("{} by {}", pause->is_drained ? "drained" : "paused", WhoAndWhy(*pause)));
  }
  if (served.launcher.empty()) return "no launcher serves it";
  if (served.report == nullptr) return Cell(Join(breakers, "; "));
  if (served.report->state == ProviderState::kDraining) return "it is not configured any more";
  if (is_at_fault) return Cell::OfText(served.report->fault);
  breakers.insert(breakers.begin(), served.report->notices.begin(), served.report->notices.end());
  return Cell(Join(breakers, "; "));
}

}  // namespace

std::vector<Column> ProviderColumns() {
  std::vector<std::string_view> words = ProviderStateWords();
  words.push_back(kUnserved);
  words.push_back(kPausedProvider);
  return {{.key = "name", .title = "Provider", .kind = Kind::kProvider, .fit = {Importance::kAlways}},
          {.key = "driver", .title = "Driver", .fit = {Importance::kLow}},
          {.key = "launcher", .title = "Launcher", .fit = {Importance::kMedium, 12}},
          {.key = "state",
           .title = "State",
           .kind = Kind::kState,
           .words = std::move(words),
           .fit = {Importance::kHigh}},
          {.key = "since", .title = "Since", .kind = Kind::kTime, .fit = {Importance::kLow}},
          {.key = "nodes", .title = "Nodes", .fit = {Importance::kHigh}},
          {.key = "used", .title = "Used", .fit = {Importance::kMedium, 16}},
          {.key = "free", .title = "Free", .fit = {Importance::kMedium, 16}},
          {.key = "why", .title = "Why", .fit = kSentence}};
}

Listing ListProviders(const std::map<ProviderName, std::string>& drivers,
                      const std::map<std::string, Component>& components, const store::NodeCache& nodes,
                      const store::RecordCache<ProviderPause>& pauses,
                      const store::RecordCache<Breaker>& breakers) {
  std::map<ProviderName, std::vector<Served>> providers = ByProvider(components);
  for (const auto& [name, driver] : drivers) {
    if (providers[name].empty()) providers[name].emplace_back();
  }
  for (const auto& [name, pause] : pauses.all()) {
    if (providers[name].empty()) providers[name].emplace_back();
  }
  Listing listing{ProviderColumns(), {}};
  for (const auto& [name, launchers] : providers) {
    const Resources& used = nodes.UsedBy(name);
    auto driver = drivers.find(name);
    const ProviderPause* pause = pauses.Find(name);
    for (const Served& served : launchers) {
      std::vector<Cell> state = StateCells(served, pause, breakers.Find({name}));
      Resources free = served.report == nullptr ? Resources() : Free(served.report->limit, used);
      listing.rows.push_back({Cell(name.value), Cell(driver == drivers.end() ? "" : driver->second),
                              Cell(served.launcher), std::move(state[0]), std::move(state[1]),
                              Cell(nodes.OfProvider(name).size()), Cell(Amounts(used)), Cell(Amounts(free)),
                              WhyCell(served, pause, BreakerTexts(breakers, name))});
    }
  }
  return listing;
}

namespace {

constexpr std::string_view kServed = "up", kWaiting = "paused", kFailing = "failing";

struct PoolUse {
  int launchers = 0;
  int paused = 0;   // launchers that wait for capacity
  int failing = 0;  // launchers that cannot use the provider
  NodeCounts nodes;
};

// By launcher's host.
std::set<std::pair<std::string, ProviderName>> FailingProviders(
    const std::map<std::string, Component>& components) {
  std::set<std::pair<std::string, ProviderName>> failing;
  for (const auto& [path, component] : components) {
    for (const auto& [provider, report] : component.providers) {
      if (report.state == ProviderState::kFailing) failing.emplace(component.hostname, provider);
    }
  }
  return failing;
}

bool IsBroken(const PoolKey& pool, const store::RecordCache<Breaker>& breakers) {
  return breakers.Find({pool.provider}) != nullptr || breakers.Find({pool.provider, pool.pool}) != nullptr;
}

std::string_view StateOf(const PoolUse& use, bool is_broken) {
  if (use.launchers == 0) return kUnserved;
  if (use.failing == use.launchers || is_broken) return kFailing;
  return use.paused == use.launchers ? kWaiting : kServed;
}

}  // namespace

std::vector<Column> PoolColumns() {
  std::vector<Column> columns = {
      {.key = "provider", .title = "Provider", .kind = Kind::kProvider, .fit = kName},
      {.key = "pool", .title = "Pool", .fit = kName},
      {.key = "state",
       .title = "State",
       .kind = Kind::kState,
       .words = {kServed, kWaiting, kFailing, kUnserved},
       .fit = {Importance::kHigh}}};
  AppendCountColumns(columns);
  return columns;
}

Listing ListPools(const Configured& configured, const std::map<std::string, Component>& components,
                  const store::NodeCache& nodes, const store::RecordCache<Breaker>& breakers) {
  std::map<PoolKey, PoolUse> uses;
  for (const auto& [pool, limit] : configured.pools) uses[pool];
  std::set<std::pair<std::string, ProviderName>> failing = FailingProviders(components);
  for (const auto& [path, component] : components) {
    if (component.kind != ComponentKind::kPool) continue;
    PoolUse& use = uses[{component.provider_name, component.name.value_or(PoolName())}];
    ++use.launchers;
    use.paused += component.is_paused ? 1 : 0;
    use.failing += failing.contains({component.hostname, component.provider_name}) ? 1 : 0;
  }
  for (const auto& [id, node] : nodes.all())
    uses[{node.record.provider, node.record.pool}].nodes.Add(node.record.state);
  Listing listing{PoolColumns(), {}};
  for (const auto& [pool, use] : uses) {
    std::vector<Cell>& row = listing.rows.emplace_back();
    row.emplace_back(pool.provider.value);
    row.emplace_back(pool.pool.value);
    row.push_back(Cell::OfText(StateOf(use, IsBroken(pool, breakers))));
    AppendCounts(row, use.nodes);
  }
  return listing;
}

namespace {

Cell PageCell(const Component& component, const PageOf& page_of) {
  bool has_page = component.kind == ComponentKind::kLauncher && component.locks_slots;
  return has_page ? Cell(page_of(component)) : Cell();
}

}  // namespace

std::vector<Column> DaemonColumns() {
  return {{.key = "kind", .title = "Daemon", .fit = {Importance::kAlways}},
          {.key = "hostname", .title = "Host", .fit = kName},
          {.key = "state", .title = "State", .kind = Kind::kState, .fit = {Importance::kHigh}},
          {.key = "version", .title = "Version", .fit = {Importance::kMedium, 12}},
          {.key = "page", .title = "Page", .fit = {Importance::kHigh}}};
}

Listing ListDaemons(const std::map<std::string, Component>& components, const PageOf& page_of) {
  Listing listing{DaemonColumns(), {}};
  for (const auto& [path, component] : components) {
    if (component.kind == ComponentKind::kPool) continue;
    listing.rows.push_back({Cell::OfText(ToString(component.kind)), Cell::OfText(component.hostname),
                            Cell::OfText(ToString(component.state)), TextCell(component.version),
                            PageCell(component, page_of)});
  }
  return listing;
}

}  // namespace nodepool::listing
