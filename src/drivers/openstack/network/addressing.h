#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "async/async_value.h"
#include "base/log/logging.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/api/list_cache.h"
#include "drivers/openstack/network/addresses.h"
#include "drivers/openstack/network/floating_ip.h"

namespace nodepool::drivers::openstack {

// How the servers of one provider are reached: what creations and deletions share of networks and floating
// addresses.
struct Addressing {
  // The lists are read by `tasks`; everything outlives it.
  Addressing(Session& of_cloud, TaskGroup& tasks, Random& random, const std::string& provider,
             log::Logger for_faults);

  Session& session;
  log::Logger logger;
  // Read once for all waiting tasks (driver-openstack.md 8, D-93).
  driver::cloud::api::ListCache<FloatingIps> floating_ips;
  AsyncValue<NetworkRoles> network_roles;
  // Floating addresses made here, by server: known before nova shows them.
  std::map<std::string, std::string> floating_ip_of;
  bool has_ipv6 = false;  // of this host
  // Returns the first of a server's addresses that accepts a connection; nullopt: none did by the deadline.
  using Probe = std::function<Task<std::optional<std::string>>(std::vector<std::string>, SteadyTime)>;
  Probe probe;
};

// The addresses of a server that is active. Creates a floating IP if one is wanted; otherwise finds those
// that nova does not show (driver-openstack.md 9.2).
Task<ChosenAddresses> FindAddresses(Addressing& addressing, driver::cloud::MachineReport& machine,
                                    bool wants_floating_ip, Server& server);

// The floating addresses of a server that nova does not show (driver-openstack.md 9.2). The server's ports
// are read only if the shared list of floating addresses has candidates. Errors are logged and count as none.
Task<std::vector<FloatingAddress>> FindHiddenFloatingIps(Addressing& addressing, Server server);

}  // namespace nodepool::drivers::openstack
