#pragma once

#include "driver/cloud/adapter.h"
#include "drivers/openstack/api/cloud.h"

namespace nodepool::drivers::openstack {

// Makes a server and ends when it is active and can be reached, with a floating
// address where it needs one (driver-openstack.md 7, 9, 10). Its id is stored the
// moment the cloud gives it, also of one that is born in ERROR (D-92).
//
// Errors: kQuota; LaunchError with what the cloud says; whatever a call refuses.
Task<driver::cloud::Instance> CreateMachine(Cloud& cloud, driver::cloud::MachineReport& machine,
                                            driver::cloud::CreateParameters parameters);

// What a listed server is to the framework, but for its addresses and volumes.
driver::cloud::Instance Describe(const Cloud& cloud, const Server& server);

}  // namespace nodepool::drivers::openstack
