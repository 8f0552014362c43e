#pragma once

#include <boost/json/object.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/log/logging.h"
#include "driver/cloud/adapter.h"
#include "drivers/openstack/config/openstack_config.h"

namespace nodepool::drivers::openstack {

// What looking up brought for one creation.
struct ServerParts {
  std::string image_id;
  std::string image_name;  // as the configuration calls it
  bool config_drive = false;
  std::string flavor_id;
  std::vector<std::string> network_ids;
  bool takes_auto_network = false;  // the service chooses a network when asked to
};

const OpenstackLabel& LabelOf(const driver::cloud::CreateParameters& parameters);

// The member "server" of the request that makes a server (driver-openstack.md 7.3).
boost::json::object ServerBody(const driver::cloud::CreateParameters& parameters, const ServerParts& parts,
                               std::map<std::string, std::string> metadata);

// The server's metadata: the properties of the label, those made from the request,
// and who owns it (driver-openstack.md 7.2, 7.4, D-71). A template that cannot be filled is logged and
// left out.
std::map<std::string, std::string> ServerMetadata(const driver::cloud::CreateParameters& parameters,
                                                  const ServerParts& parts, const log::Logger& logger);

}  // namespace nodepool::drivers::openstack
