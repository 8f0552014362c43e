#pragma once

#include <string>
#include <vector>

#include "drivers/openstack/compute/server.h"
#include "drivers/openstack/network/networks.h"

namespace nodepool::drivers::openstack {

// A server's addresses by their use (driver-openstack.md 9.4); empty: none.
struct ChosenAddresses {
  std::string public_ipv4;
  std::string public_ipv6;
  std::string private_ipv4;
  std::string interface_ip;
  // Nothing qualifies as the interface, and the first fixed address is taken (D-95).
  bool is_guess = false;
  // Addresses to be reached by, of which several were as good: the first was taken, and
  // trying them tells (driver-openstack.md 9.3). One with `accepts` is taken before others.
  std::vector<std::string> undecided;
};

// `has_ipv6`: this host reaches IPv6 addresses.
ChosenAddresses ChooseAddresses(const Server& server, const NetworkRoles& roles, const CloudConfig& cloud,
                                bool has_ipv6);

// Whether the server, which is active, needs a floating address to be reached (driver-openstack.md 10.1),
// as far as its own record shows.
bool NeedsFloatingIp(const Server& server, const ChosenAddresses& addresses, const NetworkRoles& roles,
                     const CloudConfig& cloud);

// Whether an IPv4 address is private, reserved or none at all.
bool IsReservedIpv4(const std::string& text);

// Whether this host has a default route for IPv6.
bool HasIpv6Route();

}  // namespace nodepool::drivers::openstack
