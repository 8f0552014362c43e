#pragma once

#include <string>

#include "cli/show_listing.h"
#include "model/job.h"

namespace nodepool::cli {

// `nodepool job-list`: every rule about jobs (operations.md 13.5).
ListingCommand JobListing(Output output);

// `nodepool job-create NAME [--hold-on-failure N]`: adds a rule, then lists all.
Task<int> CreateJob(Context& context, JobRule rule);

// `nodepool job-delete ID`: prints a message if there is no such rule, else nothing.
Task<int> DeleteJob(Context& context, std::string id);

// Why the text is not a valid name for a rule; empty if it is.
std::string RefuseBadJobName(const std::string& name);

}  // namespace nodepool::cli
