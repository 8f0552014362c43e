#pragma once

#include <memory>

#include "driver/cloud/framework.h"
#include "drivers/kubernetes/api/access.h"
#include "drivers/kubernetes/api/cluster.h"
#include "drivers/kubernetes/api/watches.h"
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

 private:
  Means means_;  // used by all that follows

 public:
  driver::cloud::AdapterEnvironment environment;
  std::shared_ptr<const KubernetesConfig> config;
  log::Logger logger{"nodepool.driver.kubernetes"};
  AccessSource access;
  Cluster cluster;
  // Whether the cluster lets us give the rights that RoleBody calls full.
  bool grants_full_roles = true;
  Watches watches;  // end before the rest is destroyed
};

}  // namespace nodepool::drivers::kubernetes
