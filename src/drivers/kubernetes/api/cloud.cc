#include "drivers/kubernetes/api/cloud.h"

namespace nodepool::drivers::kubernetes {

namespace {

std::string NameOf(const KubernetesConfig& config) {
  return config.context ? "context " + *config.context : "the current context";
}

}  // namespace

Cloud::Cloud(driver::cloud::AdapterEnvironment environment_of,
             std::shared_ptr<const KubernetesConfig> config_of, Means means)
    : means_(std::move(means)),
      environment(std::move(environment_of)),
      config(std::move(config_of)),
      access(environment.loop, *means_.runner, means_.environment, means_.read_files),
      cluster(environment.loop, environment.blocking_pool, environment.random, *means_.http, access,
              NameOf(*config), {environment.observer, config->name, config->driver}),
      watches(environment, *config, cluster) {}

}  // namespace nodepool::drivers::kubernetes
