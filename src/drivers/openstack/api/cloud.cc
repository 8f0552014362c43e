#include "drivers/openstack/api/cloud.h"

#include <set>

namespace nodepool::drivers::openstack {

namespace {

std::set<std::string> ImagesToFind(const OpenstackProviderConfig& config) {
  std::set<std::string> names;
  for (const auto& [key, image] : config.cloud_images) {
    if (!image.is_id) names.insert(image.external_name);
  }
  return names;
}

}  // namespace

Cloud::Cloud(const driver::cloud::AdapterEnvironment& environment, const OpenstackProviderConfig& provider,
             net::HttpClient& http, TaskGroup& tasks, log::Logger for_faults)
    : config(provider),
      logger(std::move(for_faults)),
      session(environment.loop, environment.blocking_pool, environment.random, http, config.cloud_config,
              Session::Options{config.rate, {environment.observer, config.name, "openstack"}}),
      lookups(session),
      images(session, tasks, environment.random, ImagesToFind(config),
             [&framework = environment.framework] { framework.CapacityChanged(); }),
      servers(tasks, environment.random, log::Logger("nodepool.OpenStackAdapter"),
              "servers of provider " + config.name.str(), [this] { return ListServers(session); }),
      addressing(session, tasks, environment.random, config.name.str(), logger) {}

void Cloud::DropLookups() {
  lookups.Clear();
  images.Clear();
  addressing.network_roles.Clear();
}

}  // namespace nodepool::drivers::openstack
