#include "driver/cloud/quota/shortages.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/text.h"

namespace nodepool::driver::cloud {

namespace {

constexpr std::size_t kMaxNamed = 3;

}  // namespace

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

std::string CandidateChoice::Explain(SteadyTime now, WallTime wall) const {
  if (candidates_.empty()) return "";
  std::vector<std::string> passed_over;
  std::size_t count = 0;
  for (std::size_t i = 0; i < index_; ++i) {
    if (!shortages_.Contains(candidates_[i], now) || ++count > kMaxNamed) continue;
    auto until = std::chrono::floor<std::chrono::seconds>(wall + (shortages_.Until(candidates_[i]) - now));
    passed_over.push_back(fmt::format("{} until {:%H:%M} UTC", candidates_[i],
                                      fmt::gmtime(std::chrono::system_clock::to_time_t(until))));
  }
  if (passed_over.empty()) return name() + (index_ == 0 ? ", the first choice" : "");
  std::string more = count > kMaxNamed ? fmt::format(" and {} others", count - kMaxNamed) : "";
  return fmt::format("{}; no capacity for {}{}", name(), Join(passed_over, ", "), more);
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
