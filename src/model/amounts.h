#pragma once

#include <boost/json/object.hpp>

#include "model/resources.h"

namespace nodepool {

// Amounts for users and programs, whole ones as integers. Those without a limit are left out.
boost::json::object Amounts(const Resources& resources);

}  // namespace nodepool
