#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "driver/cloud/adapter.h"
#include "drivers/gce/compute/lookups.h"

namespace nodepool::drivers::gce {

// What a node of the label may be, the preferred one first: all zones for the first type, then for the next
// (driver-gce.md 15). At least one.
std::vector<Candidate> CandidatesOf(const GceLabel& label, const GceConfig& config);
// Their names for operators; empty: there is no choice.
std::vector<std::string> CandidateNames(const GceLabel& label, const GceConfig& config);

const GceLabel& LabelOf(const driver::cloud::CreateParameters& parameters);
const GcePool& PoolOf(const driver::cloud::CreateParameters& parameters);
// The candidate that the launch tries now.
Candidate ChosenOf(const driver::cloud::CreateParameters& parameters, const GceConfig& config);

// The body of an insert (driver-gce.md 7.1). `image`: as the API names it.
boost::json::object InstanceRequest(const driver::cloud::CreateParameters& parameters,
                                    const GceConfig& config, const std::string& image);

}  // namespace nodepool::drivers::gce
