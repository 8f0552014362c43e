#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "async/async_value.h"
#include "driver/cloud/api/list_cache.h"
#include "driver/provider.h"
#include "drivers/openstack/api/lookups.h"
#include "drivers/openstack/api/session.h"
#include "drivers/openstack/compute/server.h"
#include "drivers/openstack/config/provider_config.h"
#include "drivers/openstack/network/floating_ip.h"
#include "drivers/openstack/network/networks.h"
#include "drivers/openstack/storage/cloud_images.h"

namespace nodepool::drivers::openstack {

// How old a list may be for counting and cleaning.
constexpr Duration kListAge = std::chrono::seconds(5);

// What creations, deletions and look-ups of one provider share: its session, the
// lists that are read once for all of them, and what is remembered.
struct Cloud {
  // `client` is used for nothing else.
  Cloud(driver::ProviderEnvironment for_environment, std::shared_ptr<const OpenstackProviderConfig> provider,
        std::unique_ptr<net::HttpClient> client);

  driver::ProviderEnvironment environment;
  std::shared_ptr<const OpenstackProviderConfig> config;
  std::unique_ptr<net::HttpClient> http;
  log::Logger logger{"nodepool.OpenStackAdapter." + config->name.value};
  Session session;
  TaskGroup tasks;
  Lookups lookups;
  CloudImages images;
  // Each read for all who wait (driver-openstack.md 8, D-93).
  driver::cloud::api::ListCache<Servers> servers;
  driver::cloud::api::ListCache<FloatingIps> floating_ips;
  AsyncValue<NetworkRoles> network_roles;
  // Floating addresses made here, by server: known before nova shows them.
  std::map<std::string, std::string> floating_ip_of;
  std::set<std::string> unknown_flavors;    // that were warned of
  std::set<std::string> unreadable_owners;  // servers that were warned of
  bool has_ipv6 = false;                    // of this host
  // The first of some addresses of a server that accepts a connection; none until the time.
  using Probe = std::function<Task<std::optional<std::string>>(std::vector<std::string>, SteadyTime)>;
  Probe probe;

  Loop& loop() { return environment.loop; }
  // Everything that was looked up is asked anew: a creation was refused as wrong.
  void DropLookups();
};

// The floating addresses of a server that nova does not show (driver-openstack.md 9.2). The list that all
// share shows whether there are any; only then the server's ports are asked for. What cannot be read counts
// as nothing.
Task<std::vector<FloatingAddress>> FindHiddenFloatingIps(Cloud& cloud, Server server);

}  // namespace nodepool::drivers::openstack
