#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "drivers/openstack/config/cloud_config.h"

namespace nodepool::drivers::openstack {

// Moves what belongs to logging in from a cloud's top level into its `auth`, under
// today's names (driver-openstack.md 3.3, step 6).
void GatherAuth(boost::json::object& settings);

// Reads `auth_type` and `auth` and checks that they suffice. Error(kInvalid): a type
// that is not supported (D-97), an option that is missing.
Credentials ReadCredentials(const boost::json::object& settings, const std::string& cloud);

// The body of the request for a token (driver-openstack.md 4).
boost::json::object TokenRequest(const Credentials& credentials);

}  // namespace nodepool::drivers::openstack
