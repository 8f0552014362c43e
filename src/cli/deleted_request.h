#pragma once

#include <boost/json/object.hpp>

#include "store/records.h"

namespace nodepool::cli {

// Whether an entry of a launcher's /api/v1/requests is of a request that is no longer in the tree.
bool IsDeleted(const boost::json::object& entry);

// What such an entry, received at `now`, shows of the request. What is missing in it or malformed is left
// out.
store::StoredRequest DeletedRequest(const RequestId& id, const boost::json::object& entry, WallTime now);

}  // namespace nodepool::cli
