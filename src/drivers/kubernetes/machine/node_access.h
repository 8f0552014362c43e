#pragma once

#include <boost/json/value.hpp>

#include "driver/cloud/adapter.h"
#include "drivers/kubernetes/api/cloud.h"
#include "drivers/kubernetes/machine/account.h"

namespace nodepool::drivers::kubernetes {

// The life of a node's token as its record keeps it: driver_data.
boost::json::value ToDriverData(const TokenLife& life);

// A token that was asked for is renewed in the second half of its life, and is no longer handed out in the
// last quarter. In openshiftpods that of a record is renewed when our own has become another one.
Task<driver::cloud::AccessState> StateOfAccess(Cloud& cloud, driver::cloud::NodeAccess access);

// The same access with a new token.
Task<driver::cloud::NodeAccess> RenewAccess(Cloud& cloud, driver::cloud::NodeAccess access);

}  // namespace nodepool::drivers::kubernetes
