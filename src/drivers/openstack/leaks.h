#pragma once

#include <vector>

#include "driver/cloud/adapter.h"
#include "drivers/openstack/api/cloud.h"

namespace nodepool::drivers::openstack {

// The project's resources that may carry Nodepool's metadata, for the search for leaks: servers; volumes that
// nothing uses; images of this provider. If a service other than nova does not answer, this is logged, and
// the sweep leaves its resources out.
Task<std::vector<driver::cloud::Resource>> ListMarked(Cloud& cloud);

// Deletes one of them. If it is gone already, that is success or kNotFound.
Task<> DeleteMarked(Cloud& cloud, driver::cloud::Resource resource);

}  // namespace nodepool::drivers::openstack
