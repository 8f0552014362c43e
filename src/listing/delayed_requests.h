#pragma once

#include "listing/problem.h"
#include "listing/status_records.h"

namespace nodepool::listing {

// Sets `delayed_requests` of the problems that stop launches. A request is delayed by a problem while it
// waits, does not have all its nodes on their way, and for one of its labels every pool that offers it is
// stopped, at least one of them by this problem: what has another way is not delayed. A problem whose
// beginning is not known begins with the first request that it delays.
void CountDelayedRequests(Problems& problems, const StatusRecords& records);

}  // namespace nodepool::listing
