#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "drivers/openstack/compute/server.h"
#include "drivers/openstack/network/networks.h"

namespace nodepool::drivers::openstack {

struct FloatingIp {
  std::string id;
  std::string address;
  std::string status;
  std::string port_id;  // empty: not in use
  std::string fixed_ipv4;
};

// By id; those of our project.
using FloatingIps = std::map<std::string, FloatingIp>;
Task<FloatingIps> ListFloatingIps(Session& session);
Task<std::vector<FloatingIp>> FindFloatingIps(Session& session, std::string address);
Task<std::vector<FloatingIp>> FindFloatingIpsOfPort(Session& session, std::string port_id);
Task<> DeleteFloatingIp(Session& session, std::string id);  // a missing one is fine

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

// Where a floating address is to lead: none when the server has no port, or no IPv4
// address at the one that counts (driver-openstack.md 10.2). Error(kInvalid): several
// ports, and the network for floating addresses is not known.
struct FloatingTarget {
  std::string port_id;
  std::string mac;
  std::string fixed_ipv4;
};
std::optional<FloatingTarget> ChooseTarget(std::vector<Port> ports, const NetworkRoles& roles);

// The floating addresses of a server by its ports, for when nova does not show any (driver-openstack.md 9.2).
struct FloatingAddress {
  FloatingIp ip;
  std::string mac;
};
Task<std::vector<FloatingAddress>> FindFloatingIpsOfPorts(Session& session, std::string server_id);

// Adds the address to those of its server.
void AddTo(Server& server, const FloatingAddress& floating);

// A new floating address, bound to the target; or the one that the target has already.
Task<FloatingIp> CreateFloatingIp(Session& session, std::string network_id, FloatingTarget target);

}  // namespace nodepool::drivers::openstack
