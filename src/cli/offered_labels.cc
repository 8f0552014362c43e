#include "cli/offered_labels.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace nodepool::cli {
namespace {

std::string FaultOf(const LabelName& label, const std::set<LabelName>& offered) {
  std::vector<std::string> names;
  for (const LabelName& name : offered) names.push_back(name.value);
  std::optional<std::string> nearest = NearestSpelling(label.value, names);
  return fmt::format("no launcher offers label {}{}", Excerpt(label.value),
                     nearest ? fmt::format("; did you mean {}?", *nearest) : "");
}

}  // namespace

Task<std::string> FaultOfLabels(Context& context, std::vector<LabelName> labels) {
  std::vector<Component> pools = co_await context.store.components.List(ComponentKind::kPool);
  if (pools.empty()) co_return "";
  std::set<LabelName> offered;
  for (const Component& pool : pools)
    offered.insert(pool.supported_labels.begin(), pool.supported_labels.end());
  auto unknown =
      std::ranges::find_if(labels, [&](const LabelName& label) { return !offered.contains(label); });
  co_return unknown == labels.end() ? "" : FaultOf(*unknown, offered);
}

}  // namespace nodepool::cli
