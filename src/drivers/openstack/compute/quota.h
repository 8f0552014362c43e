#pragma once

#include <string>
#include <vector>

#include "driver/cloud/adapter.h"
#include "drivers/openstack/api/cloud.h"

namespace nodepool::drivers::openstack {

// The project's limits (driver-openstack.md 13). Refreshes the list of flavors as well, since the needs of
// labels depend on it.
Task<driver::QuotaInformation> ReadLimits(Cloud& cloud);

// The resources that a machine of the label needs.
driver::QuotaInformation NeedOf(const Flavor& flavor, const OpenstackLabel& label);

// All servers with the resources that they use. A server of an unknown flavor counts as an instance without
// size (D-91).
Task<std::vector<driver::cloud::Instance>> ListMachines(Cloud& cloud);

// Logs in, reads limits and servers, and looks for the flavors, images and networks that the
// provider's configuration names. What is not there, a sentence each. An error: the cloud cannot be
// used at all.
Task<std::vector<std::string>> FindFaults(Cloud& cloud);

}  // namespace nodepool::drivers::openstack
