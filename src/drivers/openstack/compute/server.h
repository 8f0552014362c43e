#pragma once

#include <boost/json/object.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "drivers/openstack/api/session.h"

namespace nodepool::drivers::openstack {

struct Address {
  std::string network;  // its name
  int version = 4;
  std::string text;
  std::string mac;
  bool is_floating = false;
  bool accepts = false;  // it took a connection when it was tried (driver-openstack.md 9.3)
};

// A server as nova lists it, in any microversion (driver-openstack.md 8).
struct Server {
  std::string id;
  std::string name;
  std::string status;  // upper case
  std::string task;    // what nova does with it at the moment; empty: nothing
  std::string fault;
  std::map<std::string, std::string> metadata;
  std::vector<Address> addresses;
  std::string access_ipv4;
  std::string access_ipv6;
  std::string host_id;
  std::string zone;
  std::string flavor_id;  // empty when the size itself is given:
  std::optional<int> vcpus;
  std::optional<int> ram;  // MiB
  std::vector<std::string> volumes;

  bool is_deleted() const { return status == "DELETED"; }
};

Server ReadServer(const boost::json::object& entry);

// All servers of the project, by id.
using Servers = std::map<std::string, Server>;
Task<Servers> ListServers(Session& session);

// The id of the new server. `body` is the member "server" of the request (driver-openstack.md 7.3).
Task<std::string> CreateServer(Session& session, boost::json::object body);

// False: there is no such server.
Task<bool> DeleteServer(Session& session, std::string id);

Task<std::string> ConsoleOutput(Session& session, std::string id);

}  // namespace nodepool::drivers::openstack
