#pragma once

#include <string>
#include <vector>

#include "drivers/aws/config/aws_config.h"

namespace nodepool::drivers::aws {

// A kind of machine and the place for it.
struct Candidate {
  std::string type;
  AwsPlace place;
};

// What a label's node may be in a pool, the preferred one first: each place for the first type, then for the
// next. Empty: the label has no type.
std::vector<Candidate> CandidatesOf(const AwsLabel& label, const AwsPool& pool);

// The same for Adapter::Candidates; empty where there is no choice, and for fleets, in which AWS chooses.
std::vector<std::string> CandidateNames(const AwsLabel& label, const AwsPool& pool);

}  // namespace nodepool::drivers::aws
