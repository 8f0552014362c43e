#pragma once

#include <string>
#include <vector>

#include "drivers/openstack/api/cloud.h"

namespace nodepool::drivers::openstack {

// Logs in, reads limits and servers, and looks for the flavors, images and networks that the
// provider's configuration names. What is not there, a sentence each. An error: the cloud cannot be
// used at all.
Task<std::vector<std::string>> FindFaults(Cloud& cloud);

}  // namespace nodepool::drivers::openstack
