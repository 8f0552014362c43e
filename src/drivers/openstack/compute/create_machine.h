#pragma once

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

}  // namespace nodepool::drivers::openstack
