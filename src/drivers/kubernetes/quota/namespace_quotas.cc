#include "drivers/kubernetes/quota/namespace_quotas.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/attempt.h"
#include "drivers/kubernetes/api/paths.h"

namespace nodepool::drivers::kubernetes {

namespace {

constexpr const char* kWithoutQuotas =
    ", so that the configured limits alone count there until the account may list and watch it";

// A pod that has ended uses no quota.
Resources RequestsOfLiving(const ObjectCache& pods) {
  Resources sum;
  for (const auto& [key, pod] : pods.objects()) {
    if (pod.phase == "Failed" || pod.phase == "Succeeded") continue;
    Add(sum, pod.amounts);
    Add(sum, {{resource::kInstances, 1}});
  }
  return sum;
}

}  // namespace

NamespaceQuotas::NamespaceQuotas(Cloud& cloud, CapacityChanges changes) : cloud_(cloud) {
  auto on_quota = [changes](const Object* before, const Object* now) {
    bool is_same = before != nullptr && now != nullptr && before->amounts == now->amounts;
    if (!is_same) changes.needs();
    changes.quota();
  };
  for (const auto& [name, pool] : cloud.config->pools) {
    std::string quotas = InNamespace(name.str(), "resourcequotas");
    quotas_[name.str()] = cloud.NewCache({std::move(quotas), "", on_quota, kWithoutQuotas});
  }
}

Task<Resources> NamespaceQuotas::Limits() {
  for (const auto& [pool, cache] : quotas_) {
    cloud_.PodsOfPool(pool);
    cache->Start(cloud_.tasks);
    Outcome<> listed = co_await Attempt(cache->WaitForFirstList());
    if (!listed && !cache->is_refused()) listed.error().Rethrow();
  }
  co_return Sum().limits;
}

Resources NamespaceQuotas::UsedByOthers() const { return Sum().others; }

NamespaceRoom NamespaceQuotas::RoomOfPool(const std::string& pool) const {
  return RoomOf(quotas_.at(pool)->objects(), RequestsOfLiving(cloud_.PodsOfPool(pool)));
}

NamespaceRoom NamespaceQuotas::Sum() const {
  NamespaceRoom sum;
  bool is_first = true;
  for (const auto& [pool, cache] : quotas_) {
    NamespaceRoom room = RoomOfPool(pool);
    if (std::exchange(is_first, false)) {
      sum = std::move(room);
      continue;
    }
    auto is_unlimited = [&room](const auto& entry) { return !room.limits.contains(entry.first); };
    std::erase_if(sum.limits, is_unlimited);
    std::erase_if(sum.others, is_unlimited);
    for (auto& [resource, limit] : sum.limits) {
      limit = ExactSum(limit, room.limits.at(resource));
      sum.others[resource] = ExactSum(sum.others[resource], room.others.at(resource));
    }
  }
  return sum;
}

void NamespaceQuotas::RequirePossible(const KubernetesLabel& label) const {
  for (const auto& [name, pool] : cloud_.config->pools) {
    bool has_label =
        std::ranges::any_of(pool->labels, [&](const auto& entry) { return entry.second.get() == &label; });
    if (!has_label) continue;
    Resources limits = RoomOfPool(name.str()).limits;
    Resources excess = Shortage(limits, {}, label.need_of_cluster);
    if (excess.empty()) continue;
    const std::string& resource = excess.begin()->first;
    throw Error(
        Verdict::kInvalid,
        fmt::format(
            "a ResourceQuota of namespace {} is too small for label {}: it needs {} {}, {} are allowed", name,
            label.name, label.need_of_cluster.at(resource), resource, limits.at(resource)));
  }
}

}  // namespace nodepool::drivers::kubernetes
