#pragma once

#include <vector>

#include "driver/cloud/adapter.h"
#include "drivers/openstack/api/cloud.h"

namespace nodepool::drivers::openstack {

// The project's limits (driver-openstack.md 13). Brings the list of flavors up to
// date, too: what a label needs depends on it.
Task<driver::QuotaInformation> ReadLimits(Cloud& cloud);

// What a machine of the label needs.
driver::QuotaInformation NeedOf(const Flavor& flavor, const OpenstackLabel& label);

// All servers with what they use. One whose flavor is not known counts as an instance
// without size (D-91).
Task<std::vector<driver::cloud::Instance>> ListMachines(Cloud& cloud);

}  // namespace nodepool::drivers::openstack
