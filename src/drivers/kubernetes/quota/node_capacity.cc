#include "drivers/kubernetes/quota/node_capacity.h"

#include <fmt/format.h>

#include "async/attempt.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "driver/cloud/api/url_text.h"
#include "driver/cloud/metadata.h"
#include "drivers/kubernetes/api/paths.h"

namespace nodepool::drivers::kubernetes {

namespace json = boost::json;

namespace {

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

}  // namespace

NodeCapacity::NodeCapacity(Cloud& cloud, CapacityChanges changes)
    : cloud_(cloud), room_(driver::cloud::kProviderKey, cloud.config->name.str()) {
  auto on_node = [this, changes](const Object* before, const Object* now) {
    if (!room_.NodeChanged(before, now)) return;
    changes.needs();
    changes.quota();
  };
  auto on_pod = [this, changes](const Object* before, const Object* now) {
    if (room_.PodChanged(before, now)) changes.quota();
  };
  nodes_ = cloud.NewCache({kNodes, "", on_node, kWithout});
  pods_ = cloud.NewCache({kAllPods, PlacedPods(), on_pod, kWithout});
}

Task<Resources> NodeCapacity::Limits() {
  for (ObjectCache* cache : {nodes_.get(), pods_.get()}) {
    cache->Start(cloud_.tasks);
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

}  // namespace nodepool::drivers::kubernetes
