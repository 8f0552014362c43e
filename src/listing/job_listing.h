#pragma once

#include <map>

#include "listing/listing.h"
#include "store/records.h"

namespace nodepool::listing {

std::vector<Column> JobColumns();

// The rules about jobs, by id (operations.md 13.5); ids without their leading zeros.
Listing ListJobs(const std::map<JobId, store::StoredJobRule>& rules);

}  // namespace nodepool::listing
