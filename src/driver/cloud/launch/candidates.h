#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "driver/cloud/adapter.h"

namespace nodepool::driver::cloud {

// A kind of machine and the place for it: a zone, a subnet.
template <class Place>
struct Candidate {
  std::string type;
  Place place;
  auto operator<=>(const Candidate&) const = default;
};

// What a label's node may be, the preferred one first: all places for the first type, then for the next.
template <class Place>
std::vector<Candidate<Place>> CandidatesOf(const std::vector<std::string>& types,
                                           const std::vector<Place>& places) {
  std::vector<Candidate<Place>> candidates;
  for (const std::string& type : types) {
    for (const Place& place : places) candidates.push_back({type, place});
  }
  return candidates;
}

// Their names for Adapter::Candidates: "m5.large spot in us-west-2a"; `name_of`: a place's, empty: it has
// none. No names: there is no choice.
template <class Place>
std::vector<std::string> NamesOf(const std::vector<Candidate<Place>>& candidates, bool is_spot,
                                 const std::function<std::string(const Place&)>& name_of) {
  std::vector<std::string> names;
  if (candidates.size() < 2) return names;
  for (const Candidate<Place>& candidate : candidates) {
    std::string place = name_of(candidate.place);
    names.push_back(candidate.type + (is_spot ? " spot" : "") + (place.empty() ? "" : " in " + place));
  }
  return names;
}

// The one of the label's, of which there is at least one, that the creation tries now.
template <class Place>
Candidate<Place> ChosenOf(const std::vector<Candidate<Place>>& candidates,
                          const CreateParameters& parameters) {
  return candidates.at(std::min(parameters.candidate, candidates.size() - 1));
}

}  // namespace nodepool::driver::cloud
