#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"

namespace nodepool::driver::cloud {

// Which candidates (Adapter::Candidates) a provider's cloud recently had no capacity for.
class Shortages {
 public:
  // How long a candidate is avoided.
  static constexpr Duration kLast = std::chrono::minutes(5);

  void Add(const std::string& candidate, SteadyTime now) { since_[candidate] = now; }
  // The candidate was created.
  void Remove(const std::string& candidate) { since_.erase(candidate); }
  bool Contains(const std::string& candidate, SteadyTime now) const;
  // When the candidate, which must be contained, is no longer avoided.
  SteadyTime Until(const std::string& candidate) const { return since_.at(candidate) + kLast; }

  // The one to try next, as an index of `candidates`: the first without a shortage, else the one whose
  // shortage is oldest; none that is in `tried`. None: all were tried.
  std::optional<std::size_t> Next(const std::vector<std::string>& candidates,
                                  const std::set<std::size_t>& tried, SteadyTime now) const;

 private:
  std::map<std::string, SteadyTime> since_;  // bounded by what the provider's labels name
};

// Which candidate one attempt of a launch creates.
class CandidateChoice {
 public:
  // Begins with the best one. `shortages` outlives the choice.
  CandidateChoice(std::vector<std::string> candidates, Shortages& shortages, SteadyTime now);

  std::size_t index() const { return index_; }
  // Empty: the adapter has no candidates.
  std::string name() const { return candidates_.empty() ? "" : candidates_[index_]; }
  // The preferred candidates that were not chosen because of shortages: "; no capacity for a, b", or empty.
  std::string Why(SteadyTime now) const;

  // The current candidate and why, for operators: "b, the first choice", "c; no capacity for a until 12:03
  // UTC, b until 12:05 UTC". Empty: the adapter has no candidates. `wall` is the time `now` as operators know
  // it.
  std::string Explain(SteadyTime now, WallTime wall) const;

  void Created() { shortages_.Remove(name()); }
  // The cloud has no capacity for the current one: takes the next. False: all were tried.
  bool MoveOn(SteadyTime now);

 private:
  std::vector<std::string> candidates_;
  Shortages& shortages_;
  std::set<std::size_t> tried_;
  std::size_t index_ = 0;
};

}  // namespace nodepool::driver::cloud
