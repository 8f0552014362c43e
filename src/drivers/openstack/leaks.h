#pragma once

#include <vector>

#include "driver/cloud/adapter.h"
#include "drivers/openstack/api/cloud.h"

namespace nodepool::drivers::openstack {

// What in the project may carry a Nodepool's mark, for the search for leaks: servers;
// volumes that nothing uses; images of this provider. A service other than nova that does
// not answer is logged, and what it has is left out of this sweep.
Task<std::vector<driver::cloud::Resource>> ListMarked(Cloud& cloud);

// One of them. What is gone already is success, or kNotFound.
Task<> DeleteMarked(Cloud& cloud, driver::cloud::Resource resource);

}  // namespace nodepool::drivers::openstack
