#include "listing/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "listing/image_health.h"

namespace nodepool::listing {
namespace {

using Sentences = std::vector<std::string>;

constexpr Duration kLongWait = std::chrono::minutes(5);
constexpr Duration kLongDeletion = std::chrono::minutes(10);

std::string Count(std::size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string OneLine(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

bool Runs(const StatusRecords& records, ComponentKind kind) {
  return std::ranges::any_of(records.components,
                             [kind](const auto& entry) { return entry.second.kind == kind; });
}

void AddDaemons(Sentences& out, const StatusRecords& records) {
  if (!Runs(records, ComponentKind::kLauncher))
    out.emplace_back("No launcher runs: nobody takes requests or deletes nodes");
  if (!Runs(records, ComponentKind::kBuilder) && !records.configured.images.empty())
    out.emplace_back("No builder runs: no image is built or uploaded");
}

void AddFailingProviders(Sentences& out, const StatusRecords& records) {
  for (const auto& [path, component] : records.components) {
    for (const auto& [provider, report] : component.providers) {
      if (report.state != ProviderState::kFailing) continue;
      out.push_back(fmt::format("The launcher on {} cannot use provider {}: {}", component.hostname, provider,
                                OneLine(report.fault)));
    }
  }
}

void AddPausedProviders(Sentences& out, const StatusRecords& records) {
  for (const auto& [provider, pause] : records.pauses.all()) {
    out.push_back(fmt::format("Provider {} is {} by {}", provider, pause.is_drained ? "drained" : "paused",
                              WhoAndWhy(pause)));
  }
}

void AddUnservedProviders(Sentences& out, const StatusRecords& records) {
  if (!Runs(records, ComponentKind::kLauncher)) return;
  std::set<ProviderName> served;
  for (const auto& [path, component] : records.components) {
    if (component.kind == ComponentKind::kPool) served.insert(component.provider_name);
    for (const auto& [provider, report] : component.providers) served.insert(provider);
  }
  for (const auto& [provider, driver] : records.configured.drivers) {
    if (!served.contains(provider)) out.push_back(fmt::format("No launcher serves provider {}", provider));
  }
}

void AddUnofferedLabels(Sentences& out, const StatusRecords& records) {
  if (!Runs(records, ComponentKind::kLauncher)) return;
  std::set<LabelName> offered;
  for (const auto& [path, component] : records.components)
    offered.insert(component.supported_labels.begin(), component.supported_labels.end());
  for (const auto& [label, min_ready] : records.configured.labels) {
    if (min_ready > 0 && !offered.contains(label))
      out.push_back(fmt::format("No pool offers label {}, whose min-ready is {}", label, min_ready));
  }
}

void AddWaitingRequests(Sentences& out, const StatusRecords& records) {
  std::vector<const store::StoredRequest*> waiting = WaitingRequests(records.requests);
  std::erase_if(waiting, [&](const store::StoredRequest* request) {
    return records.now - WaitsSince(request->record) < kLongWait;
  });
  if (waiting.empty()) return;
  const RequestId& oldest = waiting.front()->id;
  auto why = records.why.find(oldest);
  out.push_back(fmt::format("{} for more than 5 minutes, {} for longest{}",
                            Count(waiting.size(), "request waits", "requests wait"), oldest,
                            why == records.why.end() ? "" : ": " + OneLine(why->second)));
}

void AddImages(Sentences& out, const StatusRecords& records) {
  for (const auto& [image, settings] : records.configured.images) {
    ImageHealth health = HealthOf(records.images, image, &settings, records.now);
    Sentences troubles = TroublesOf(health, records.now);
    if (!troubles.empty()) out.push_back(fmt::format("Image {}: {}", image, Join(troubles, "; ")));
  }
}

void AddSlowDeletions(Sentences& out, const StatusRecords& records) {
  std::map<ProviderName, std::size_t> slow;
  for (const NodeId& id : records.nodes.InState(NodeState::kDeleting)) {
    const Node& node = records.nodes.Find(id)->record;
    if (records.now - node.state_time > kLongDeletion) ++slow[node.provider];
  }
  for (const auto& [provider, count] : slow)
    out.push_back(fmt::format("Provider {} has been deleting {} for more than 10 minutes", provider,
                              Count(count, "node", "nodes")));
}

}  // namespace

std::vector<std::string> FindTroubles(const StatusRecords& records) {
  Sentences sentences;
  for (auto* add : {&AddDaemons, &AddFailingProviders, &AddPausedProviders, &AddUnservedProviders,
                    &AddUnofferedLabels, &AddWaitingRequests, &AddImages, &AddSlowDeletions}) {
    add(sentences, records);
  }
  return sentences;
}

}  // namespace nodepool::listing
