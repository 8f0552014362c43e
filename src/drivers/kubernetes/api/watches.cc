#include "drivers/kubernetes/api/watches.h"

#include "driver/cloud/api/url_text.h"
#include "driver/cloud/metadata.h"
#include "drivers/kubernetes/api/object.h"

namespace nodepool::drivers::kubernetes {

namespace {

// A project's labels are lost when it is made.
ObjectCache::Watched NamespacesOf(const KubernetesConfig& config) {
  if (config.kind == Kind::kOpenshift) return {kProjects, ""};
  return {kNamespaces, OwnSelector(config)};
}

}  // namespace

std::string OwnSelector(const KubernetesConfig& config) {
  std::string selector = std::string(driver::cloud::kProviderKey) + "=" + config.name.str();
  return "labelSelector=" + driver::cloud::api::PercentEncoded(selector);
}

Watches::Watches(const driver::cloud::AdapterEnvironment& environment, const KubernetesConfig& config,
                 Cluster& cluster)
    : environment_(environment),
      config_(config),
      cluster_(cluster),
      namespaces_(environment.loop, environment.random, cluster, NamespacesOf(config)),
      pods_(environment.loop, environment.random, cluster,
            {kAllPods, OwnSelector(config),
             [this](const Object* before, const Object* now) { SeePod(before, now); }}),
      tasks_(environment.loop, log::Logger("nodepool.driver.kubernetes")) {}

ObjectCache& Watches::Namespaces() {
  Start(namespaces_);
  return namespaces_;
}

ObjectCache& Watches::Pods() {
  Start(pods_);
  return pods_;
}

ObjectCache& Watches::PodsOfPool(const std::string& pool) {
  std::unique_ptr<ObjectCache>& pods = pods_of_pools_[pool];
  if (!pods) {
    pods = NewCache({InNamespace(pool, "pods"), OwnSelector(config_),
                     [this](const Object* before, const Object* now) { SeePod(before, now); }});
  }
  Start(*pods);
  return *pods;
}

std::unique_ptr<ObjectCache> Watches::NewCache(ObjectCache::Watched watched) {
  return std::make_unique<ObjectCache>(environment_.loop, environment_.random, cluster_, std::move(watched));
}

void Watches::SeePod(const Object* before, const Object* now) {
  auto serves = [](const Object* pod) { return pod != nullptr && !pod->is_terminating && !HasEnded(*pod); };
  if (!serves(before) || serves(now)) return;
  bool is_ours =
      deletions_.contains(before->name_space) || deletions_.contains(KeyOf(before->name_space, before->name));
  if (!is_ours) environment_.framework.MachinesTaken();
}

}  // namespace nodepool::drivers::kubernetes
