#include "drivers/kubernetes/quota/namespace_room.h"

#include <algorithm>

namespace nodepool::drivers::kubernetes {

namespace {

double AmountIn(const Resources& amounts, const std::string& name) {
  auto found = amounts.find(name);
  return found == amounts.end() ? 0 : found->second;
}

// A quota also limits what no node's record has: services, limits, volumes.
bool IsOfPods(const std::string& name) {
  bool is_extended = name.find('/') != std::string::npos && !name.starts_with("count/");
  return is_extended || name == resource::kInstances || name == resource::kCores || name == resource::kRam ||
         name == "ephemeral-storage";
}

}  // namespace

NamespaceRoom RoomOf(const std::map<std::string, Object>& quotas, const Resources& own) {
  NamespaceRoom room;
  Resources left;
  for (const auto& [name, quota] : quotas) {
    if (quota.is_scoped) continue;
    for (const auto& [resource, limit] : quota.amounts) {
      if (!IsOfPods(resource)) continue;
      double others = std::max(0.0, ExactSum(AmountIn(quota.used, resource), -AmountIn(own, resource)));
      double rest = ExactSum(limit, -others);
      auto [known, is_first] = room.limits.try_emplace(resource, limit);
      if (!is_first) known->second = std::min(known->second, limit);
      auto [least, is_new] = left.try_emplace(resource, rest);
      if (!is_new) least->second = std::min(least->second, rest);
    }
  }
  for (const auto& [resource, limit] : room.limits)
    room.others[resource] = std::max(0.0, ExactSum(limit, -left.at(resource)));
  return room;
}

}  // namespace nodepool::drivers::kubernetes
