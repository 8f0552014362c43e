#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "async/task_group.h"
#include "base/scope_exit.h"
#include "driver/cloud/framework.h"
#include "drivers/kubernetes/api/cluster.h"
#include "drivers/kubernetes/api/object_cache.h"
#include "drivers/kubernetes/config/kubernetes_config.h"

namespace nodepool::drivers::kubernetes {

// "labelSelector=..." of what this provider has made.
std::string OwnSelector(const KubernetesConfig& config);

// What a provider watches in its cluster, each collection from its first use on.
class Watches {
 public:
  // Everything outlives it.
  Watches(const driver::cloud::AdapterEnvironment& environment, const KubernetesConfig& config,
          Cluster& cluster);

  // Namespaces of this provider, or of OpenShift all projects that we may see.
  ObjectCache& Namespaces();
  // Pods of this provider in all namespaces.
  ObjectCache& Pods();
  // Pods of this provider in the namespace of a pool of openshiftpods.
  ObjectCache& PodsOfPool(const std::string& pool);

  // A collection of the caller's own, and the start of its watch.
  std::unique_ptr<ObjectCache> NewCache(ObjectCache::Watched watched);
  void Start(ObjectCache& cache) { cache.Start(tasks_); }

  // Until the result is destroyed, the end of pods in a namespace, or of "NAMESPACE/POD", is our own work.
  // Otherwise the framework checks when a pod ends, or begins to.
  [[nodiscard]] auto Deleting(std::string key) {
    return ScopeExit([this, place = deletions_.insert(std::move(key))] { deletions_.erase(place); });
  }

  // Ends all of them.
  Task<> Stop() { return tasks_.Stop(); }

 private:
  void SeePod(const Object* before, const Object* now);

  const driver::cloud::AdapterEnvironment& environment_;
  const KubernetesConfig& config_;
  Cluster& cluster_;
  std::multiset<std::string> deletions_;
  ObjectCache namespaces_;
  ObjectCache pods_;
  std::map<std::string, std::unique_ptr<ObjectCache>> pods_of_pools_;
  TaskGroup tasks_;  // ended before the rest is destroyed
};

}  // namespace nodepool::drivers::kubernetes
