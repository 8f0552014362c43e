#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "async/task_group.h"
#include "driver/cloud/framework.h"
#include "drivers/kubernetes/api/access.h"
#include "drivers/kubernetes/api/cluster.h"
#include "drivers/kubernetes/api/object_cache.h"
#include "drivers/kubernetes/config/kubernetes_config.h"
#include "net/http/http_client.h"
#include "process/command.h"

namespace nodepool::drivers::kubernetes {

// What a provider reaches its cluster with; replaced in tests.
struct Means {
  std::unique_ptr<net::HttpClient> http;
  std::unique_ptr<process::Runner> runner;
  process::Environment environment;  // of credential plugins
  AccessSource::ReadFiles read_files;
};

// What the parts of a provider of one of the three drivers share.
struct Cloud {
  Cloud(driver::cloud::AdapterEnvironment environment, std::shared_ptr<const KubernetesConfig> config,
        Means means);

  Loop& loop() { return environment.loop; }

  // Namespaces of this provider, or of OpenShift all projects that we may see; begins to watch them.
  ObjectCache& Namespaces();
  // Pods of this provider in all namespaces; begins to watch them.
  ObjectCache& Pods();
  // Pods of this provider in the namespace of a pool of openshiftpods; begins to watch them.
  ObjectCache& PodsOfPool(const std::string& pool);

  // A cache that is to be started.
  std::unique_ptr<ObjectCache> NewCache(ObjectCache::Watched watched);

  // "labelSelector=..." of what this provider has made.
  std::string OwnSelector() const;

  driver::cloud::AdapterEnvironment environment;
  std::shared_ptr<const KubernetesConfig> config;
  Means means;
  log::Logger logger{"nodepool.driver.kubernetes"};
  AccessSource access;
  Cluster cluster;
  // The namespaces, or "NAMESPACE/POD" of openshiftpods, that are being deleted.
  std::multiset<std::string> deletions;
  // Whether the cluster lets us give the rights that RoleBody calls full.
  bool grants_full_roles = true;

 private:
  // Has the framework check when a pod ends, or begins to, that nothing here deletes.
  void SeePod(const Object* before, const Object* now);

  ObjectCache namespaces_;
  ObjectCache pods_;
  std::map<std::string, std::unique_ptr<ObjectCache>> pods_of_pools_;

 public:
  // Watches; ended before the rest is destroyed.
  TaskGroup tasks;
};

}  // namespace nodepool::drivers::kubernetes
