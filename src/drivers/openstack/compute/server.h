#pragma once

#include <boost/json/object.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/log/logging.h"
#include "driver/cloud/adapter.h"
#include "drivers/openstack/api/session.h"
#include "drivers/openstack/config/openstack_config.h"

namespace nodepool::drivers::openstack {

struct Address {
  std::string network;  // its name
  int version = 4;
  std::string text;
  std::string mac;
  bool is_floating = false;
  bool accepts = false;  // it accepted a connection when tried (driver-openstack.md 9.3)
};

// A server as nova lists it, in any microversion (driver-openstack.md 8).
struct Server {
  std::string id;
  std::string name;
  std::string status;  // upper case
  std::string task;    // what nova is doing with it; empty: nothing
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

// Returns the id of the new server. `body` is the member "server" of the request (driver-openstack.md 7.3).
Task<std::string> CreateServer(Session& session, boost::json::object body);

// False: the server does not exist.
Task<bool> DeleteServer(Session& session, std::string id);

Task<std::string> ConsoleOutput(Session& session, std::string id);

// Before 2016 a server's owner was in one item, `nodepool`, as JSON (driver-openstack.md 19). Returns the
// metadata with the current items added, if the old item names a provider and there are no current items.
std::map<std::string, std::string> WithCurrentOwnerKeys(std::map<std::string, std::string> metadata);

// Whether only the old item names the owner.
bool HasOnlyOldOwner(const std::map<std::string, std::string>& metadata);
// Whether the old item is not a JSON object, so that the server's owner is unknown.
bool HasUnreadableOwner(const std::map<std::string, std::string>& metadata);

// The same with the node's id in the current form, with ten digits: it used to be a plain number
// (operations.md 12.4). Not for deciding about deletions (D-69).
std::map<std::string, std::string> WithWholeNodeId(std::map<std::string, std::string> metadata);

// The results of look-ups for one creation.
struct ServerParts {
  std::string image_id;
  std::string image_name;  // as the configuration calls it
  bool config_drive = false;
  std::string flavor_id;
  std::vector<std::string> network_ids;
  bool takes_auto_network = false;  // the service can choose a network itself
};

const OpenstackLabel& LabelOf(const driver::cloud::CreateParameters& parameters);

// The member "server" of the request that creates a server (driver-openstack.md 7.3).
boost::json::object ServerBody(const driver::cloud::CreateParameters& parameters, const ServerParts& parts,
                               std::map<std::string, std::string> metadata);

// The server's metadata: the properties of the label, those made from the request,
// and who owns it (driver-openstack.md 7.2, 7.4, D-71). A template that cannot be filled is logged and
// left out.
std::map<std::string, std::string> ServerMetadata(const driver::cloud::CreateParameters& parameters,
                                                  const ServerParts& parts, const log::Logger& logger);

}  // namespace nodepool::drivers::openstack
