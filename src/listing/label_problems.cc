#include <fmt/format.h>

#include <set>

#include "base/text.h"
#include "listing/find_problems.h"
#include "listing/image_health.h"
#include "listing/label_state.h"

namespace nodepool::listing {
namespace {

using Severity = Problem::Severity;

// The labels whose faults the problems of images name.
std::set<LabelName> WithoutImage(const StatusRecords& records) {
  std::set<LabelName> labels;
  for (const auto& [label, why] : MissingImages(records.caches.images, records.configured, records.now))
    labels.insert(label);
  return labels;
}

// "0 of 2 min-ready nodes"; empty if there are enough.
std::string ShortStockOf(const LabelName& label, const StatusRecords& records) {
  auto configured = records.configured.labels.find(label);
  if (configured == records.configured.labels.end()) return "";
  auto free = static_cast<int>(records.caches.nodes.FreeCount(label));
  return free >= configured->second ? "" : fmt::format("{} of {} min-ready nodes", free, configured->second);
}

void AddUnavailable(Problems& out, const StatusRecords& records, std::set<LabelName>& known) {
  for (const auto& [label, faults] : FaultsOfLabels(records.caches.components.all())) {
    if (!known.insert(label).second) continue;
    std::string stock = ShortStockOf(label, records);
    out.push_back(
        {.kind = "label-unavailable",
         .name = label.value,
         .text = fmt::format("Label {} cannot be launched: {}{}", label, InOneLine(Join(faults, "; ")),
                             stock.empty() ? "" : "; it has " + stock),
         .remedy = "Correct the label in nodepool.yaml, or make what it names in the cloud",
         .stops = {{.label = label}}});
  }
}

// Of requests that wait.
std::set<LabelName> RequestedLabels(const store::RequestCache& requests) {
  std::set<LabelName> labels;
  for (const store::StoredRequest* request : WaitingRequests(requests))
    labels.insert(request->record.node_types.begin(), request->record.node_types.end());
  return labels;
}

void AddUnoffered(Problems& out, const StatusRecords& records) {
  if (!Runs(records, ComponentKind::kLauncher)) return;
  std::set<LabelName> offered;
  for (const auto& [path, component] : records.caches.components.all())
    offered.insert(component.supported_labels.begin(), component.supported_labels.end());
  std::set<LabelName> requested = RequestedLabels(records.caches.requests);
  for (const auto& [label, min_ready] : records.configured.labels) {
    bool is_wanted = min_ready > 0 || requested.contains(label);
    if (!is_wanted || offered.contains(label)) continue;
    std::string stock = min_ready > 0 ? fmt::format(", whose min-ready is {}", min_ready) : "";
    out.push_back({.kind = "label-unoffered",
                   .name = label.value,
                   .text = fmt::format("No pool offers label {}{}", label, stock),
                   .remedy = "Add it to a pool, or start a launcher that has one" +
                             std::string(stock.empty() ? "" : ", or set its min-ready to 0"),
                   .stops = {{.label = label}}});
  }
}

void AddShortStock(Problems& out, const StatusRecords& records, const std::set<LabelName>& known) {
  for (const auto& [label, shortage] :
       ShortagesOf(records.configured, records.caches.components.all(), records.caches.nodes)) {
    if (known.contains(label)) continue;
    out.push_back({.kind = "short-stock",
                   .name = label.value,
                   .severity = Severity::kWait,
                   .since = shortage.since,
                   .text = fmt::format("Label {} has {}: {}", label, ShortStockOf(label, records),
                                       InOneLine(shortage.why)),
                   .remedy = "Raise the limit that the reason names, give nodes back, or lower min-ready"});
  }
}

}  // namespace

void FindLabelProblems(Problems& out, const StatusRecords& records) {
  std::set<LabelName> known = WithoutImage(records);
  AddUnavailable(out, records, known);
  AddUnoffered(out, records);
  AddShortStock(out, records, known);
}

}  // namespace nodepool::listing
