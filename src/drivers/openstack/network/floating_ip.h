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
