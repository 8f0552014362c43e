#include "cli/offered_labels.h"

#include "sched/requests/offered_labels.h"

namespace nodepool::cli {

Task<std::string> FaultOfLabels(Context& context, std::vector<LabelName> labels) {
  std::vector<Component> pools = co_await context.store.components.List(ComponentKind::kPool);
  std::vector<Component> launchers = co_await context.store.components.List(ComponentKind::kLauncher);
  std::vector<const Component*> components;
  for (const Component& component : pools) components.push_back(&component);
  for (const Component& component : launchers) components.push_back(&component);
  co_return sched::FaultOfLabels(labels, components);
}

}  // namespace nodepool::cli
