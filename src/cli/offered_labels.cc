#include "cli/offered_labels.h"

#include <fmt/format.h>

#include <set>

#include "base/text.h"
#include "sched/requests/offered_labels.h"

namespace nodepool::cli {
namespace {

std::string FaultOfProvider(const ProviderName& wanted, const std::vector<Component>& pools) {
  std::set<std::string> served;
  for (const Component& pool : pools) served.insert(pool.provider_name.value);
  if (served.empty() || served.contains(wanted.value)) return "";
  std::optional<std::string> nearest = NearestSpelling(wanted.value, {served.begin(), served.end()});
  return fmt::format("no launcher serves provider {}{}", Excerpt(wanted.value),
                     nearest ? fmt::format("; did you mean {}?", *nearest) : "");
}

}  // namespace

Task<std::string> FaultOfWish(Context& context, NodeWish wish) {
  std::vector<Component> pools = co_await context.store.components.List(ComponentKind::kPool);
  std::vector<Component> launchers = co_await context.store.components.List(ComponentKind::kLauncher);
  if (!wish.provider.empty()) {
    std::string fault = FaultOfProvider(wish.provider, pools);
    if (!fault.empty()) co_return fault;
  }
  std::vector<const Component*> components;
  for (const Component& component : pools) components.push_back(&component);
  for (const Component& component : launchers) components.push_back(&component);
  co_return sched::FaultOfLabels(wish.labels, components);
}

}  // namespace nodepool::cli
