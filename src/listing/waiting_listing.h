#pragma once

#include <cstddef>
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

Listing ListWaiting(const store::RequestCache& requests, const Reasons& why);

// A row for all requests with the same reason: how many they are, how long the first of them
// has waited, and its id; the first `limit` of them.
Listing ListWaitingByReason(const store::RequestCache& requests, const Reasons& why, std::size_t limit);

// How the status shows them.
enum class WaitingRows { kEach, kByReason };

}  // namespace nodepool::listing
