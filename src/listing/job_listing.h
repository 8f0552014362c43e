#pragma once

#include <cstdint>
#include <map>

#include "listing/listing.h"
#include "store/records.h"

namespace nodepool::listing {

std::vector<Column> JobColumns();

// The id as people write it: without its leading zeros.
std::int64_t NumberOf(const JobId& id);

// The rules about jobs, by id (operations.md 13.5).
Listing ListJobs(const std::map<JobId, store::StoredJobRule>& rules);

}  // namespace nodepool::listing
