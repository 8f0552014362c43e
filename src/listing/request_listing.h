#pragma once

#include "listing/listing.h"
#include "store/records.h"

namespace nodepool::listing {

// Requests as operations.md 5.4 shows them, in the order given; keys as in 6.3.
Listing ListRequests(const std::map<RequestId, store::StoredRequest>& requests);

}  // namespace nodepool::listing
