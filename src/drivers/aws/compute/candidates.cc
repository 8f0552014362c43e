#include "drivers/aws/compute/candidates.h"

namespace nodepool::drivers::aws {

namespace {

std::string CandidateName(const Candidate& candidate, bool is_spot) {
  std::string name = candidate.type;
  if (is_spot) name += " spot";
  const AwsPlace& place = candidate.place;
  if (place.subnet_id) {
    name += " in " + *place.subnet_id;
  } else if (place.zone) {
    name += " in " + *place.zone;
  }
  return name;
}

}  // namespace

std::vector<Candidate> CandidatesOf(const AwsLabel& label, const AwsPool& pool) {
  std::vector<Candidate> candidates;
  for (const std::string& type : label.instance_types) {
    for (const AwsPlace& place : pool.places) candidates.push_back({type, place});
  }
  return candidates;
}

std::vector<std::string> CandidateNames(const AwsLabel& label, const AwsPool& pool) {
  std::vector<std::string> names;
  if (label.fleet_strategy) return names;
  std::vector<Candidate> candidates = CandidatesOf(label, pool);
  if (candidates.size() < 2) return names;
  for (const Candidate& candidate : candidates) names.push_back(CandidateName(candidate, label.use_spot));
  return names;
}

}  // namespace nodepool::drivers::aws
