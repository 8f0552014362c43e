#pragma once

#include <optional>
#include <string>
#include <vector>

#include "drivers/openstack/api/session.h"
#include "drivers/openstack/config/cloud_config.h"

namespace nodepool::drivers::openstack {

// A network as neutron lists it.
struct Network {
  std::string id;
  std::string name;
  bool is_external = false;  // router:external
  bool is_physical = false;  // provider:physical_network is given
  bool has_gateway = false;  // a subnet of it has one
};

// What networks are good for (driver-openstack.md 9.1). Addresses name networks by
// their names, calls by their ids.
struct NetworkRoles {
  std::vector<std::string> external_ipv4;      // names, in listing order
  std::vector<std::string> internal_ipv4;      // names
  std::vector<std::string> floating_sources;   // ids
  std::optional<std::string> nat_destination;  // id
  std::optional<Network> default_interface;
};

// Error(kInvalid): a configured network does not exist, or is ambiguous.
NetworkRoles ClassifyNetworks(const std::vector<Network>& networks, const CloudConfig& cloud);

// Reads networks, and subnets when they matter. No network service, or neither external nor internal networks
// to be used: no roles.
Task<NetworkRoles> ReadNetworkRoles(Session& session);

}  // namespace nodepool::drivers::openstack
