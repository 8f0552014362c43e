#pragma once

#include <string>

#include "driver/cloud/adapter.h"
#include "drivers/openstack/api/cloud.h"

namespace nodepool::drivers::openstack {

// Deletes a server with its floating addresses, and ends when a list that was read afterwards no longer shows
// it (driver-openstack.md 11). Error(kRetry): the cloud tried and failed; call again later.
Task<> DeleteMachine(Cloud& cloud, driver::cloud::MachineReport& machine, std::string id);

}  // namespace nodepool::drivers::openstack
