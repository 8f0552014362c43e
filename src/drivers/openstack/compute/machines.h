#pragma once

#include <set>
#include <string>
#include <vector>

#include "driver/cloud/adapter.h"
#include "drivers/openstack/api/cloud.h"

namespace nodepool::drivers::openstack {

// Creates a server and ends when it is active and reachable, with a floating address if it needs one
// (driver-openstack.md 7, 9, 10). Its id is stored as soon as the cloud returns it, even if the server is in
// ERROR from the start (D-92). Errors: kQuota; LaunchError with the cloud's message; those of the calls.
Task<driver::cloud::Instance> CreateMachine(Cloud& cloud, driver::cloud::MachineReport& machine,
                                            driver::cloud::CreateParameters parameters);

// A listed server in the framework's terms, without its addresses and volumes.
driver::cloud::Instance Describe(const OpenstackProviderConfig& config, const Server& server);

// Deletes a server with its floating addresses, and ends when a list that was read afterwards no longer shows
// it (driver-openstack.md 11). Error(kRetry): the cloud tried and failed; call again later.
Task<> DeleteMachine(Cloud& cloud, driver::cloud::MachineReport& machine, std::string id);

// The project's resources that may carry Nodepool's metadata, for the search for leaks: servers; volumes that
// nothing uses; images of this provider. If a service other than nova does not answer, this is logged, and
// the sweep leaves its resources out.
Task<std::vector<driver::cloud::Resource>> ListMarked(Cloud& cloud,
                                                      const driver::cloud::Framework& framework);

// Which of these external ids name servers that the project no longer has.
Task<std::vector<boost::json::value>> MissingServers(driver::cloud::api::ListCache<Servers>& list,
                                                     std::vector<boost::json::value> ids);

// Those of `ids` whose servers are listed as shut off or deleted.
Task<std::vector<driver::cloud::AnnouncedEnd>> EndedServers(driver::cloud::api::ListCache<Servers>& list,
                                                            std::vector<boost::json::value> ids);

// Deletes what ListMarked listed. If it is gone already, that is success or kNotFound.
Task<> DeleteMarked(Session& session, driver::cloud::Resource resource);

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
