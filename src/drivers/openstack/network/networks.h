#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "drivers/openstack/api/session.h"
#include "drivers/openstack/compute/server.h"
#include "drivers/openstack/config/cloud_config.h"

namespace nodepool::drivers::openstack {

// A network as neutron lists it.
struct Network {
  std::string id;
  std::string name;
  bool is_external = false;  // router:external
  bool is_physical = false;  // provider:physical_network is given
  bool has_gateway = false;  // one of its subnets has one
};

// The roles of networks (driver-openstack.md 9.1). Addresses name networks by
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

// Reads networks, and subnets if needed. Without a network service, or if neither external nor internal
// networks are to be used, there are no roles.
Task<NetworkRoles> ReadNetworkRoles(Session& session);

// A server's addresses by their use (driver-openstack.md 9.4); empty: none.
struct ChosenAddresses {
  std::string public_ipv4;
  std::string public_ipv6;
  std::string private_ipv4;
  std::string interface_ip;
  // No address qualifies as the interface: the first fixed address is used (D-95).
  bool is_guess = false;
  // Several equally good addresses: the first was chosen; trying them decides (driver-openstack.md 9.3). One
  // with `accepts` is preferred.
  std::vector<std::string> undecided;
};

// `has_ipv6`: this host reaches IPv6 addresses.
ChosenAddresses ChooseAddresses(const Server& server, const NetworkRoles& roles, const CloudConfig& cloud,
                                bool has_ipv6);

// Whether the server, which is active, needs a floating address to be reached (driver-openstack.md 10.1),
// as far as its own record shows.
bool NeedsFloatingIp(const Server& server, const ChosenAddresses& addresses, const NetworkRoles& roles,
                     const CloudConfig& cloud);

// Whether a text is a private or reserved IPv4 address, or not an IPv4 address at all.
bool IsReservedIpv4(const std::string& text);

// Whether this host has a default route for IPv6.
bool HasIpv6Route();

struct FloatingIp {
  std::string id;
  std::string address;
  std::string status;
  std::string port_id;  // empty: not in use
  std::string fixed_ipv4;
};

// Those of our project, by id.
using FloatingIps = std::map<std::string, FloatingIp>;
Task<FloatingIps> ListFloatingIps(Session& session);
Task<std::vector<FloatingIp>> FindFloatingIpsOfPort(Session& session, std::string port_id);
Task<> DeleteFloatingIp(Session& session, std::string id);  // a missing one is no error

struct Port {
  std::string id;
  std::string network_id;
  std::string mac;
  std::string created_at;
  std::string device_owner;
  std::vector<std::string> fixed_ipv4;
};
Port ReadPort(const boost::json::object& entry);
Task<std::vector<Port>> ListPortsOf(Session& session, std::string server_id);

// What a floating address is bound to: nothing if the server has no port, or no IPv4 address at the relevant
// one (driver-openstack.md 10.2). Error(kInvalid): several ports, and the network for floating addresses is
// unknown.
struct FloatingTarget {
  std::string port_id;
  std::string mac;
  std::string fixed_ipv4;
};
std::optional<FloatingTarget> ChooseTarget(std::vector<Port> ports, const NetworkRoles& roles);

// A floating address of a server as its ports show it, in case nova shows none (driver-openstack.md 9.2).
struct FloatingAddress {
  FloatingIp ip;
  std::string mac;
};
Task<std::vector<FloatingAddress>> FindFloatingIpsOfPorts(Session& session, std::string server_id);

// Adds the address to its server's.
void AddTo(Server& server, const FloatingAddress& floating);

// Creates a floating address bound to the target, or returns the one that the target already has.
Task<FloatingIp> CreateFloatingIp(Session& session, std::string network_id, FloatingTarget target);

}  // namespace nodepool::drivers::openstack
