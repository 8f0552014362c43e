#include "driver/cloud/shortages.h"

#include "base/text.h"

namespace nodepool::driver::cloud {

bool Shortages::Contains(const std::string& candidate, SteadyTime now) const {
  auto found = since_.find(candidate);
  return found != since_.end() && now - found->second < kLast;
}

std::optional<std::size_t> Shortages::Next(const std::vector<std::string>& candidates,
                                           const std::set<std::size_t>& tried, SteadyTime now) const {
  std::optional<std::size_t> oldest;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (tried.contains(i)) continue;
    if (!Contains(candidates[i], now)) return i;
    if (!oldest || since_.at(candidates[i]) < since_.at(candidates[*oldest])) oldest = i;
  }
  return oldest;
}

CandidateChoice::CandidateChoice(std::vector<std::string> candidates, Shortages& shortages, SteadyTime now)
    : candidates_(std::move(candidates)), shortages_(shortages) {
  index_ = shortages_.Next(candidates_, tried_, now).value_or(0);
}

std::string CandidateChoice::Why(SteadyTime now) const {
  std::vector<std::string> passed_over;
  for (std::size_t i = 0; i < index_; ++i) {
    if (shortages_.Contains(candidates_[i], now)) passed_over.push_back(candidates_[i]);
  }
  return passed_over.empty() ? "" : "; no capacity for " + Join(passed_over, ", ");
}

bool CandidateChoice::MoveOn(SteadyTime now) {
  if (candidates_.empty()) return false;
  shortages_.Add(name(), now);
  tried_.insert(index_);
  std::optional<std::size_t> next = shortages_.Next(candidates_, tried_, now);
  if (next) index_ = *next;
  return next.has_value();
}

}  // namespace nodepool::driver::cloud
