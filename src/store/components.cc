#include "store/components.h"

#include <fmt/format.h>

#include "store/paths.h"

namespace nodepool::store {

Task<std::vector<Component>> Components::List(ComponentKind kind) {
  std::vector<Component> components;
  std::vector<std::string> names = co_await tree_.Children(paths::Components(kind));
  for (const std::string& name : names) {
    zk::Result<zk::NodeData> node = co_await tree_.Get(paths::Components(kind) + "/" + name);
    if (!node) continue;
    Expected<Component> component = ParseComponent(kind, node->data);
    if (component) components.push_back(std::move(*component));
  }
  co_return components;
}

zk::Election Components::StatsElection(std::string identifier) {
  return tree_.Election(fmt::format("{}/stats", paths::kElections), std::move(identifier));
}

}  // namespace nodepool::store
