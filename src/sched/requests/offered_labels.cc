#include "sched/requests/offered_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace nodepool::sched {
namespace {

using Served = std::set<std::pair<std::string, ProviderName>>;  // providers with pools, by hostname

// Whether the launcher may soon announce pools whose labels nobody knows yet.
bool IsStarting(const Component& launcher, const Served& served, const std::set<ProviderName>& known) {
  if (launcher.state == ComponentState::kInitializing || launcher.state == ComponentState::kStopped)
    return true;
  return std::ranges::any_of(launcher.providers, [&](const auto& entry) {
    const auto& [provider, report] = entry;
    bool may_come = report.state == ProviderState::kStarting || report.state == ProviderState::kFailing;
    return may_come && !known.contains(provider) && !served.contains({launcher.hostname, provider});
  });
}

std::string Fault(const LabelName& label, const std::set<LabelName>& offered) {
  std::vector<std::string> names;
  for (const LabelName& name : offered) names.push_back(name.value);
  std::optional<std::string> nearest = NearestSpelling(label.value, names);
  return fmt::format("no launcher offers label {}{}", Excerpt(label.value),
                     nearest ? fmt::format("; did you mean {}?", *nearest) : "");
}

}  // namespace

std::string FaultOfLabels(const std::vector<LabelName>& labels,
                          const std::vector<const Component*>& components,
                          const std::set<LabelName>& configured, const std::set<ProviderName>& known) {
  std::set<LabelName> offered = configured;
  Served served;
  for (const Component* component : components) {
    if (component->kind != ComponentKind::kPool) continue;
    offered.insert(component->supported_labels.begin(), component->supported_labels.end());
    served.emplace(component->hostname, component->provider_name);
  }
  auto unknown = std::ranges::find_if(labels, [&](const LabelName& l) { return !offered.contains(l); });
  if (served.empty() || unknown == labels.end()) return "";
  bool may_come = std::ranges::any_of(components, [&](const Component* component) {
    return component->kind == ComponentKind::kLauncher && IsStarting(*component, served, known);
  });
  return may_come ? "" : Fault(*unknown, offered);
}

}  // namespace nodepool::sched
