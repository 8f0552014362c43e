#pragma once

#include <map>
#include <vector>

#include "listing/listing.h"
#include "store/records.h"

namespace nodepool::listing {

std::vector<Column> RequestColumns();

// The cells of a request.
std::vector<Cell> RequestRow(const store::StoredRequest& request);

// Requests as in operations.md 5.4, in the given order; keys as in operations.md 6.3.
Listing ListRequests(const std::map<RequestId, store::StoredRequest>& requests);

}  // namespace nodepool::listing
