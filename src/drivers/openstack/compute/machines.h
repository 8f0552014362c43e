#pragma once

#include <string>
#include <vector>

#include "driver/cloud/adapter.h"
#include "drivers/openstack/api/cloud.h"

namespace nodepool::drivers::openstack {

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

}  // namespace nodepool::drivers::openstack
