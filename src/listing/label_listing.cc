#include "listing/label_listing.h"

#include <fmt/format.h>

#include <set>

#include "base/text.h"
#include "listing/image_health.h"
#include "listing/label_state.h"
#include "listing/node_counts.h"

namespace nodepool::listing {
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

}  // namespace nodepool::listing
