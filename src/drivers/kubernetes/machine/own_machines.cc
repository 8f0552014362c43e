#include "drivers/kubernetes/machine/own_machines.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "driver/cloud/metadata.h"
#include "drivers/kubernetes/api/paths.h"
#include "drivers/kubernetes/machine/namespace.h"

namespace nodepool::drivers::kubernetes {

namespace {

constexpr std::size_t kNodeIdDigits = 10;

bool HasNodeAndProvider(const Object& object, const KubernetesConfig& config) {
  auto provider = object.labels.find(driver::cloud::kProviderKey);
  return provider != object.labels.end() && provider->second == config.name.str() &&
         object.labels.contains(driver::cloud::kNodeKey);
}

// A project whose labels were lost: gives it those that its name implies, where that is one that this
// provider gives.
bool LabelByName(Object& project, const KubernetesConfig& config) {
  std::size_t dash = project.name.rfind('-');
  if (dash == std::string::npos) return false;
  std::string pool = project.name.substr(0, dash);
  std::string id = project.name.substr(dash + 1);
  bool is_id = id.size() == kNodeIdDigits && id.find_first_not_of("0123456789") == std::string::npos;
  if (!is_id || !config.pools.contains(PoolName(pool))) return false;
  project.labels[driver::cloud::kProviderKey] = config.name.str();
  project.labels[driver::cloud::kPoolKey] = pool;
  project.labels[driver::cloud::kNodeKey] = id;
  return true;
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

std::string ExternalIdOf(Kind kind, const Object& object) {
  return kind == Kind::kOpenshiftPods ? fmt::format("{}-{}", object.name_space, object.name) : object.name;
}

}  // namespace nodepool::drivers::kubernetes
