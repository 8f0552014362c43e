#pragma once

#include <boost/json/array.hpp>
#include <optional>
#include <string>

#include "drivers/openstack/config/cloud_config.h"

namespace nodepool::drivers::openstack {

// The URL of a service in the catalog, by type or alias, name, region and interface
// (driver-openstack.md 5.1); none: the cloud does not have it.
std::optional<std::string> FindEndpoint(const boost::json::array& catalog, const CloudConfig& cloud,
                                        Service service);

}  // namespace nodepool::drivers::openstack
