#pragma once

#include <limits>
#include <map>
#include <string>

#include "listing/listing.h"
#include "store/cache/request_cache.h"

namespace nodepool::listing {

// Why requests wait, where it is known.
using Reasons = std::map<RequestId, std::string>;

// When the request began to wait.
WallTime WaitsSince(const NodeRequest& request);

// Requests that have no nodes yet, the longest waiting first.
std::vector<const store::StoredRequest*> WaitingRequests(const store::RequestCache& requests);

std::vector<Column> WaitingColumns();

// The first `limit` of them.
Listing ListWaiting(const store::RequestCache& requests, const Reasons& why,
                    std::size_t limit = std::numeric_limits<std::size_t>::max());

}  // namespace nodepool::listing
