#include "drivers/kubernetes/quota/capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "async/task.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "driver/cloud/api/url_text.h"
#include "driver/cloud/metadata.h"
#include "drivers/kubernetes/api/object.h"

namespace nodepool::drivers::kubernetes {

namespace {

// A pod that holds a place on a node.
bool IsPlaced(const Object* pod) {
  return pod != nullptr && !pod->node.empty() && pod->phase != "Failed" && pod->phase != "Succeeded";
}

// `less` of the resources in `from`, none below zero.
Resources Rest(Resources from, const Resources& less) {
  for (auto& [name, amount] : from) {
    auto used = less.find(name);
    if (used != less.end()) amount = std::max(0.0, ExactSum(amount, -used->second));
  }
  return from;
}

// What a node lacks of a resource that it does not name, it has none of.
bool Has(const Resources& room, const Resources& need) {
  return std::ranges::all_of(need, [&room](const auto& entry) {
    auto found = room.find(entry.first);
    return entry.second <= (found == room.end() ? 0 : found->second);
  });
}

}  // namespace

template <class Change>
void ClusterRoom::Alter(const std::string& node, Change change) {
  Room& room = nodes_[node];
  auto count = [&](void (ResourceSum::*how)(const Resources&)) {
    if (!room.is_known || room.is_reserved) return;
    (limits_.*how)(room.allocatable);
    (others_.*how)(TakenByOthers(room));
  };
  count(&ResourceSum::Subtract);
  change(room);
  count(&ResourceSum::Add);
  if (!room.is_known && room.pods == 0) nodes_.erase(node);
}

bool ClusterRoom::NodeChanged(const Object* before, const Object* now) {
  bool is_same = before != nullptr && now != nullptr && before->is_closed == now->is_closed &&
                 before->is_reserved == now->is_reserved && before->amounts == now->amounts &&
                 before->labels == now->labels;
  if (is_same) return false;
  Alter((now != nullptr ? now : before)->name, [now](Room& room) {
    room.is_known = now != nullptr;
    if (now == nullptr) return;
    room.is_closed = now->is_closed;
    room.is_reserved = now->is_reserved;
    room.allocatable = now->amounts;
    room.labels = now->labels;
  });
  return true;
}

bool ClusterRoom::PodChanged(const Object* before, const Object* now) {
  bool was_placed = IsPlaced(before), is_placed = IsPlaced(now);
  bool is_same = was_placed == is_placed &&
                 (!is_placed || (before->node == now->node && before->amounts == now->amounts));
  if (is_same) return false;
  if (was_placed) Place(*before, false);
  if (is_placed) Place(*now, true);
  return true;
}

void ClusterRoom::Place(const Object& pod, bool is_added) {
  auto label = pod.labels.find(own_label_);
  bool is_own = label != pod.labels.end() && label->second == own_value_;
  Resources amounts = pod.amounts;
  amounts[resource::kInstances] = 1;
  Alter(pod.node, [&](Room& room) {
    ResourceSum& sum = is_own ? room.own : room.others;
    is_added ? sum.Add(amounts) : sum.Subtract(amounts);
    room.pods += is_added ? 1 : -1;
  });
}

Resources ClusterRoom::TakenByOthers(const Room& room) {
  return room.is_closed ? Rest(room.allocatable, room.own.total()) : room.others.total();
}

Resources ClusterRoom::Free(const Room& room) {
  return Rest(Rest(room.allocatable, room.own.total()), room.others.total());
}

Resources ClusterRoom::limits() const {
  Resources limits = limits_.total();
  for (const char* name : {resource::kCores, resource::kInstances, resource::kRam})
    limits.try_emplace(name, 0);
  return limits;
}

Resources ClusterRoom::used_by_others() const { return others_.total(); }

bool ClusterRoom::MayTake(const Room& room, const PodNeed& need) {
  if (!room.is_known || (room.is_reserved && !need.may_tolerate)) return false;
  return std::ranges::all_of(need.node_selector, [&room](const auto& wanted) {
    auto label = room.labels.find(wanted.first);
    return label != room.labels.end() && label->second == wanted.second;
  });
}

ClusterRoom::Fit ClusterRoom::FitOf(const PodNeed& need) const {
  Fit fit = Fit::kNever;
  for (const auto& [name, room] : nodes_) {
    if (!MayTake(room, need) || !Has(room.allocatable, need.amounts)) continue;
    if (!room.is_closed && Has(Free(room), need.amounts)) return Fit::kNow;
    fit = Fit::kLater;
  }
  return fit;
}

Resources ClusterRoom::MostOf(const PodNeed& need, Fit fit) const {
  Resources most;
  for (const auto& [resource, amount] : need.amounts) most[resource] = 0;
  for (const auto& [name, room] : nodes_) {
    if (!MayTake(room, need) || (fit == Fit::kNow && room.is_closed)) continue;
    const Resources has = fit == Fit::kNow ? Free(room) : room.allocatable;
    for (auto& [resource, amount] : most) {
      auto found = has.find(resource);
      if (found != has.end()) amount = std::max(amount, found->second);
    }
  }
  return most;
}

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

namespace {

// The capacity of the cluster's nodes, and what pods use of it, by a watch of each. Of pods only those that
// hold a place on a node are read; all of them, whoever made them.
class NodeCapacity : public Capacity {
 public:
  explicit NodeCapacity(Cloud& cloud);

  Task<Resources> Limits() override;
  Resources UsedByOthers() const override;
  void RequirePossible(const KubernetesLabel& label) const override;
  void RequireRoom(const KubernetesLabel& label) const override;

 private:
  bool is_known() const { return nodes_->is_listed() && pods_->is_listed(); }
  // Error(`verdict`) with what one node has at most.
  [[noreturn]] void Refuse(Verdict verdict, const KubernetesLabel& label, const PodNeed& need,
                           ClusterRoom::Fit fit) const;

  Cloud& cloud_;
  ClusterRoom room_;
  std::unique_ptr<ObjectCache> nodes_;
  std::unique_ptr<ObjectCache> pods_;
};

namespace json = boost::json;

constexpr const char* kWithout =
    ", so that the configured limits alone count until the account may list and watch it";

// Pods that hold a place on a node.
std::string PlacedPods() {
  return "fieldSelector=" +
         driver::cloud::api::PercentEncoded("spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed");
}

PodNeed NeedOf(const KubernetesLabel& label) {
  PodNeed need{label.need_of_cluster, label.node_selector, false};
  if (const json::object* selector = ObjectIn(label.spec, "nodeSelector")) {
    for (const auto& [key, value] : *selector) need.node_selector[std::string(key)] = TextIn(*selector, key);
  }
  need.may_tolerate = label.spec.contains("tolerations");
  std::erase_if(need.amounts, [](const auto& entry) { return entry.second == 0; });
  return need;
}

std::string Text(const Resources& amounts) {
  std::vector<std::string> texts;
  for (const auto& [resource, amount] : amounts) texts.push_back(fmt::format("{} {}", amount, resource));
  return Join(texts, ", ");
}

NodeCapacity::NodeCapacity(Cloud& cloud)
    : cloud_(cloud), room_(driver::cloud::kProviderKey, cloud.config->name.str()) {
  auto on_node = [this, &framework = cloud.environment.framework](const Object* before, const Object* now) {
    if (!room_.NodeChanged(before, now)) return;
    framework.NeedsChanged();
    framework.QuotaChanged();
  };
  auto on_pod = [this, &framework = cloud.environment.framework](const Object* before, const Object* now) {
    if (room_.PodChanged(before, now)) framework.QuotaChanged();
  };
  nodes_ = cloud.watches.NewCache({kNodes, "", on_node, kWithout});
  pods_ = cloud.watches.NewCache({kAllPods, PlacedPods(), on_pod, kWithout});
}

Task<Resources> NodeCapacity::Limits() {
  for (ObjectCache* cache : {nodes_.get(), pods_.get()}) {
    cloud_.watches.Start(*cache);
    Outcome<> listed = co_await Attempt(cache->WaitForFirstList());
    if (cache->is_refused()) co_return Resources();
    if (!listed) listed.error().Rethrow();
  }
  co_return room_.limits();
}

Resources NodeCapacity::UsedByOthers() const { return is_known() ? room_.used_by_others() : Resources(); }

void NodeCapacity::RequirePossible(const KubernetesLabel& label) const {
  if (!is_known() || !label.has_pod) return;
  PodNeed need = NeedOf(label);
  if (room_.FitOf(need) == ClusterRoom::Fit::kNever)
    Refuse(Verdict::kInvalid, label, need, ClusterRoom::Fit::kLater);
}

void NodeCapacity::RequireRoom(const KubernetesLabel& label) const {
  // The scheduler may evict others for it.
  bool may_preempt = label.spec.contains("priorityClassName");
  if (!is_known() || !label.has_pod || may_preempt) return;
  PodNeed need = NeedOf(label);
  if (room_.FitOf(need) != ClusterRoom::Fit::kNow)
    Refuse(Verdict::kQuota, label, need, ClusterRoom::Fit::kNow);
}

void NodeCapacity::Refuse(Verdict verdict, const KubernetesLabel& label, const PodNeed& need,
                          ClusterRoom::Fit fit) const {
  bool is_now = fit == ClusterRoom::Fit::kNow;
  std::vector<std::string> selector;
  for (const auto& [key, value] : need.node_selector) selector.push_back(key + "=" + value);
  throw Error(verdict,
              fmt::format("no node of the cluster{} {} label {}: it needs {}, and one node has at most {}{}",
                          selector.empty() ? "" : " with " + Join(selector, ", "),
                          is_now ? "has room now for" : "is large enough for", label.name, Text(need.amounts),
                          Text(room_.MostOf(need, fit)), is_now ? " free" : ""));
}

// The ResourceQuotas of the namespaces of a provider's pools, by a watch in each. The provider's limits are
// the sums over its pools; a single node must also fit the namespace of its pool.
class NamespaceQuotas : public Capacity {
 public:
  explicit NamespaceQuotas(Cloud& cloud);

  Task<Resources> Limits() override;
  Resources UsedByOthers() const override;
  void RequirePossible(const KubernetesLabel& label) const override;
  // The cluster's admission refuses what does not fit now.
  void RequireRoom(const KubernetesLabel&) const override {}

 private:
  NamespaceRoom RoomOfPool(const std::string& pool) const;
  // Of what all pools' namespaces limit.
  NamespaceRoom Sum() const;

  Cloud& cloud_;
  std::map<std::string, std::unique_ptr<ObjectCache>> quotas_;  // by pool
};

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

NamespaceQuotas::NamespaceQuotas(Cloud& cloud) : cloud_(cloud) {
  auto on_quota = [&framework = cloud.environment.framework](const Object* before, const Object* now) {
    bool is_same = before != nullptr && now != nullptr && before->amounts == now->amounts;
    if (!is_same) framework.NeedsChanged();
    framework.QuotaChanged();
  };
  for (const auto& [name, pool] : cloud.config->pools) {
    std::string quotas = InNamespace(name.str(), "resourcequotas");
    quotas_[name.str()] = cloud.watches.NewCache({std::move(quotas), "", on_quota, kWithoutQuotas});
  }
}

Task<Resources> NamespaceQuotas::Limits() {
  for (const auto& [pool, cache] : quotas_) {
    cloud_.watches.PodsOfPool(pool);
    cloud_.watches.Start(*cache);
    Outcome<> listed = co_await Attempt(cache->WaitForFirstList());
    if (!listed && !cache->is_refused()) listed.error().Rethrow();
  }
  co_return Sum().limits;
}

Resources NamespaceQuotas::UsedByOthers() const { return Sum().others; }

NamespaceRoom NamespaceQuotas::RoomOfPool(const std::string& pool) const {
  return RoomOf(quotas_.at(pool)->objects(), RequestsOfLiving(cloud_.watches.PodsOfPool(pool)));
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

}  // namespace

std::unique_ptr<Capacity> MakeCapacity(Cloud& cloud) {
  if (cloud.config->kind == Kind::kOpenshiftPods) return std::make_unique<NamespaceQuotas>(cloud);
  return std::make_unique<NodeCapacity>(cloud);
}

}  // namespace nodepool::drivers::kubernetes
