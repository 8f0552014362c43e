#include "listing/label_state.h"

#include <fmt/format.h>

#include <set>

namespace nodepool::listing {

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

}  // namespace nodepool::listing
