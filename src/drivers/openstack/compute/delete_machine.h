#pragma once

#include <string>

#include "driver/cloud/adapter.h"
#include "drivers/openstack/api/cloud.h"

namespace nodepool::drivers::openstack {

// Deletes a server with its floating addresses, and ends when a list that was begun
// afterwards does not show it any more (driver-openstack.md 11). Error(kRetry): the
// cloud tried and failed; it may be asked again.
Task<> DeleteMachine(Cloud& cloud, driver::cloud::MachineReport& machine, std::string id);

}  // namespace nodepool::drivers::openstack
