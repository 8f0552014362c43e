#include "drivers/kubernetes/api/cloud.h"

#include "driver/cloud/api/url_text.h"
#include "driver/cloud/metadata.h"
#include "drivers/kubernetes/api/object.h"

namespace nodepool::drivers::kubernetes {

namespace api = driver::cloud::api;

namespace {

std::string NameOf(const KubernetesConfig& config) {
  return config.context ? "context " + *config.context : "the current context";
}

std::string SelectorOf(const KubernetesConfig& config) {
  std::string selector = std::string(driver::cloud::kProviderKey) + "=" + config.name.str();
  return "labelSelector=" + api::PercentEncoded(selector);
}

bool HasProjects(const KubernetesConfig& config) { return config.kind == Kind::kOpenshift; }

}  // namespace

Cloud::Cloud(driver::cloud::AdapterEnvironment environment_of,
             std::shared_ptr<const KubernetesConfig> config_of, Means means_of)
    : environment(std::move(environment_of)),
      config(std::move(config_of)),
      means(std::move(means_of)),
      access(environment.loop, *means.runner, means.environment, means.read_files),
      cluster(environment.loop, environment.blocking_pool, environment.random, *means.http, access,
              NameOf(*config), {environment.observer, config->name, config->driver}),
      // A project's labels are lost when it is made.
      namespaces_(environment.loop, environment.random, cluster,
                  HasProjects(*config) ? ObjectCache::Watched{kProjects, ""}
                                       : ObjectCache::Watched{kNamespaces, SelectorOf(*config)}),
      pods_(environment.loop, environment.random, cluster,
            {kAllPods, SelectorOf(*config),
             [this](const Object* before, const Object* now) { SeePod(before, now); }}),
      tasks(environment.loop, logger) {}

std::string Cloud::OwnSelector() const { return SelectorOf(*config); }

ObjectCache& Cloud::Namespaces() {
  namespaces_.Start(tasks);
  return namespaces_;
}

ObjectCache& Cloud::Pods() {
  pods_.Start(tasks);
  return pods_;
}

ObjectCache& Cloud::PodsOfPool(const std::string& pool) {
  std::unique_ptr<ObjectCache>& pods = pods_of_pools_[pool];
  if (!pods) {
    pods = NewCache({InNamespace(pool, "pods"), OwnSelector(),
                     [this](const Object* before, const Object* now) { SeePod(before, now); }});
  }
  pods->Start(tasks);
  return *pods;
}

void Cloud::SeePod(const Object* before, const Object* now) {
  auto serves = [](const Object* pod) { return pod != nullptr && !pod->is_terminating && !HasEnded(*pod); };
  if (!serves(before) || serves(now)) return;
  bool is_ours =
      deletions.contains(before->name_space) || deletions.contains(KeyOf(before->name_space, before->name));
  if (!is_ours) environment.framework.MachinesTaken();
}

std::unique_ptr<ObjectCache> Cloud::NewCache(ObjectCache::Watched watched) {
  return std::make_unique<ObjectCache>(loop(), environment.random, cluster, std::move(watched));
}

}  // namespace nodepool::drivers::kubernetes
