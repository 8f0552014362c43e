#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "async/async_value.h"
#include "driver/cloud/api/list_cache.h"
#include "driver/cloud/framework.h"
#include "drivers/openstack/api/lookups.h"
#include "drivers/openstack/api/session.h"
#include "drivers/openstack/compute/server.h"
#include "drivers/openstack/config/openstack_config.h"
#include "drivers/openstack/network/floating_ip.h"
#include "drivers/openstack/network/networks.h"
#include "drivers/openstack/storage/cloud_images.h"

namespace nodepool::drivers::openstack {

// The max. age of a list used for counting and cleaning.
constexpr Duration kListAge = std::chrono::seconds(5);

// What creations, deletions and look-ups of one provider share: its session, shared lists and cached
// look-ups.
struct Cloud {
  // `client` is used only here.
  Cloud(driver::cloud::AdapterEnvironment for_environment,
        std::shared_ptr<const OpenstackProviderConfig> provider, std::unique_ptr<net::HttpClient> client);

  driver::cloud::AdapterEnvironment environment;
  std::shared_ptr<const OpenstackProviderConfig> config;
  std::unique_ptr<net::HttpClient> http;
  log::Logger logger{"nodepool.OpenStackAdapter." + config->name.value};
  Session session;
  TaskGroup tasks;
  Lookups lookups;
  CloudImages images;
  // Each list is read once for all waiting tasks (driver-openstack.md 8, D-93).
  driver::cloud::api::ListCache<Servers> servers;
  driver::cloud::api::ListCache<FloatingIps> floating_ips;
  AsyncValue<NetworkRoles> network_roles;
  // Floating addresses made here, by server: known before nova shows them.
  std::map<std::string, std::string> floating_ip_of;
  std::set<std::string> unknown_flavors;    // already logged
  std::set<std::string> unreadable_owners;  // servers, already logged
  bool has_ipv6 = false;                    // of this host
  // Returns the first of a server's addresses that accepts a connection; nullopt: none did by the deadline.
  using Probe = std::function<Task<std::optional<std::string>>(std::vector<std::string>, SteadyTime)>;
  Probe probe;

  Loop& loop() { return environment.loop; }
  // Drops all cached look-ups; called when a creation was refused as invalid.
  void DropLookups();
};

// The floating addresses of a server that nova does not show (driver-openstack.md 9.2). The server's ports
// are read only if the shared list of floating addresses has candidates. Errors are logged and count as none.
Task<std::vector<FloatingAddress>> FindHiddenFloatingIps(Cloud& cloud, Server server);

}  // namespace nodepool::drivers::openstack
