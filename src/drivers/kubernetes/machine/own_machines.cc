#include "drivers/kubernetes/machine/own_machines.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "driver/cloud/metadata.h"
#include "drivers/kubernetes/api/paths.h"
#include "drivers/kubernetes/config/names.h"
#include "drivers/kubernetes/machine/namespace.h"
#include "drivers/kubernetes/objects/labels.h"

namespace nodepool::drivers::kubernetes {

namespace {

bool HasNodeAndProvider(const Object& object, const KubernetesConfig& config) {
  auto provider = object.labels.find(driver::cloud::kProviderKey);
  return provider != object.labels.end() && provider->second == config.name.str() &&
         object.labels.contains(driver::cloud::kNodeKey);
}

bool HasEnded(const Object& pod) { return pod.phase == "Failed" || pod.phase == "Succeeded"; }

// Whether the label of a node's namespace, as configured now, has a pod.
bool HasPod(const KubernetesConfig& config, const Object& name_space) {
  auto of = [&name_space](const char* key) {
    auto label = name_space.labels.find(key);
    return label == name_space.labels.end() ? std::string() : label->second;
  };
  auto pool = config.pools.find(PoolName(of(driver::cloud::kPoolKey)));
  if (pool == config.pools.end()) return false;
  auto label = pool->second->labels.find(LabelName(of(kLabelKey)));
  return label != pool->second->labels.end() && dynamic_cast<const KubernetesLabel&>(*label->second).has_pod;
}

// A project whose labels were lost: gives it those that its name implies, where that is one that this
// provider gives.
bool LabelByName(Object& project, const KubernetesConfig& config) {
  for (const auto& [pool, settings] : config.pools) {
    std::string id = NodeIdIn(project.name, pool.str());
    if (id.empty()) continue;
    project.labels[driver::cloud::kProviderKey] = config.name.str();
    project.labels[driver::cloud::kPoolKey] = pool.str();
    project.labels[driver::cloud::kNodeKey] = id;
    return true;
  }
  return false;
}

Task<std::vector<Object>> OwnProjects(Cloud& cloud) {
  Task<ObjectList> reading = cloud.cluster.List(kProjects, "");
  ObjectList list = co_await std::move(reading);
  std::string own_name;
  bool is_name_known = false;
  std::vector<Object> own;
  for (Object& project : list.objects) {
    bool is_own = HasNodeAndProvider(project, *cloud.config);
    bool may_be_own = !is_own && !project.labels.contains(driver::cloud::kProviderKey) &&
                      !project.requester.empty() && LabelByName(project, *cloud.config);
    if (may_be_own) {
      if (!std::exchange(is_name_known, true)) own_name = co_await OwnName(cloud);
      is_own = project.requester == own_name;
    }
    if (is_own) own.push_back(std::move(project));
  }
  co_return own;
}

Task<std::vector<Object>> OwnPods(Cloud& cloud) {
  std::vector<Object> own;
  for (const auto& [name, pool] : cloud.config->pools) {
    Task<ObjectList> reading = cloud.cluster.List(InNamespace(name.str(), "pods"), cloud.OwnSelector());
    ObjectList list = co_await std::move(reading);
    std::ranges::move(list.objects, std::back_inserter(own));
  }
  co_return own;
}

Task<std::vector<Object>> OwnNamespaces(Cloud& cloud) {
  // Both labels: the provider's and a node's.
  std::string selector = cloud.OwnSelector() + "," + driver::cloud::kNodeKey;
  Task<ObjectList> reading = cloud.cluster.List(kNamespaces, std::move(selector));
  ObjectList list = co_await std::move(reading);
  co_return std::move(list.objects);
}

}  // namespace

Task<std::vector<Object>> ListOwn(Cloud& cloud) {
  switch (cloud.config->kind) {
    case Kind::kOpenshift:
      return OwnProjects(cloud);
    case Kind::kOpenshiftPods:
      return OwnPods(cloud);
    case Kind::kKubernetes:
      break;
  }
  return OwnNamespaces(cloud);
}

bool IsUsable(Cloud& cloud, const Object& object) {
  if (object.is_terminating || HasEnded(object)) return false;
  if (cloud.config->kind != Kind::kKubernetes || !HasPod(*cloud.config, object)) return true;
  ObjectCache& pods = cloud.Pods();
  if (!pods.is_listed()) return true;
  auto pod = pods.objects().find(KeyOf(object.name, object.labels.at(kLabelKey)));
  return pod != pods.objects().end() && !HasEnded(pod->second);
}

std::string ExternalIdOf(Kind kind, const Object& object) {
  return kind == Kind::kOpenshiftPods ? fmt::format("{}-{}", object.name_space, object.name) : object.name;
}

}  // namespace nodepool::drivers::kubernetes
