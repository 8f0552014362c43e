#include "drivers/kubernetes/quota/room.h"

#include <algorithm>

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

}  // namespace nodepool::drivers::kubernetes
