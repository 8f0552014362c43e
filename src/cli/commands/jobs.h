#pragma once

#include <string>

#include "cli/show_listing.h"
#include "model/job.h"

namespace nodepool::cli {

// `nodepool job-list`: every rule about jobs (operations.md 13.5).
ListingCommand JobListing(Output output);

// `nodepool job-create NAME [--hold-on-failure N]`: adds a rule, unless there is the same already, then lists
// all. A rule of this name with another limit is an error: it would apply before the new one.
Task<int> CreateJob(Context& context, JobRule rule);

// `nodepool job-delete ID`; an error if there is no such rule.
Task<int> DeleteJob(Context& context, std::string id);

// Why the text is not a valid name for a rule; empty if it is.
std::string RefuseBadJobName(const std::string& name);

}  // namespace nodepool::cli
