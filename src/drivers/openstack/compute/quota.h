#pragma once

#include <set>
#include <string>
#include <vector>

#include "driver/cloud/adapter.h"
#include "drivers/openstack/api/cloud.h"

namespace nodepool::drivers::openstack {

// The project's limits (driver-openstack.md 13). Refreshes the list of flavors as well, since the needs of
// labels depend on it.
Task<driver::QuotaInformation> ReadLimits(Session& session, Lookups& lookups);

// The resources that a machine of the label needs.
driver::QuotaInformation NeedOf(const Flavor& flavor, const OpenstackLabel& label);

// Servers that an operator may wonder about, each logged once.
class OddServers {
 public:
  // `cloud`: its name.
  OddServers(log::Logger logger, std::string cloud) : logger_(std::move(logger)), cloud_(std::move(cloud)) {}

  void LogUnknownFlavor(const Server& server);
  void LogUnreadableOwner(const Server& server);

 private:
  log::Logger logger_;
  std::string cloud_;
  std::set<std::string> flavors_;  // already logged
  std::set<std::string> owners_;   // servers, already logged
};

// All servers with the resources that they use. A server of an unknown flavor counts as an instance without
// size (D-91).
Task<std::vector<driver::cloud::Instance>> ListMachines(Cloud& cloud, OddServers& odd);

// Logs in, reads limits and servers, and looks for the flavors, images and networks that the
// provider's configuration names. What is not there, a sentence each. An error: the cloud cannot be
// used at all.
Task<std::vector<std::string>> FindFaults(Cloud& cloud, OddServers& odd);

}  // namespace nodepool::drivers::openstack
