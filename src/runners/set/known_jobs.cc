#include "runners/set/known_jobs.h"

#include <algorithm>

namespace nodepool::runners {
namespace {

constexpr Duration kRemembered = std::chrono::minutes(10);
constexpr Duration kEndRemembered = std::chrono::hours(1);
constexpr std::size_t kMostJobs = 20'000;  // more are left to the figures

}  // namespace

bool KnownJobs::Add(RunnerJob job, WallTime now) {
  std::int64_t request = job.request;
  if (jobs_.size() >= kMostJobs || ended_.contains(request)) return false;
  was_nothing_ = false;
  return jobs_.try_emplace(request, Known{std::move(job), now}).second;
}

void KnownJobs::End(std::int64_t request, WallTime now) {
  Remove(request);
  if (ended_.size() >= kMostJobs) ended_.erase(ended_.begin());  // numbers grow
  ended_.insert_or_assign(request, now);
}

void KnownJobs::Remove(std::int64_t request) {
  jobs_.erase(request);
  std::erase_if(deferred_, [request](const RunnerJob& job) { return job.request == request; });
}

void KnownJobs::Compare(const sched::JobStatistics& statistics, WallTime now) {
  bool is_nothing = statistics.is_nothing();
  if (is_nothing && was_nothing_) jobs_.clear();
  was_nothing_ = is_nothing;
  std::erase_if(jobs_, [now](const auto& entry) { return now - entry.second.since > kRemembered; });
  std::erase_if(ended_, [now](const auto& entry) { return now - entry.second > kEndRemembered; });
}

std::int64_t KnownJobs::CountOf(const std::string& repository) const {
  return std::ranges::count_if(jobs_,
                               [&](const auto& entry) { return entry.second.job.repository == repository; });
}

std::vector<RunnerJob> KnownJobs::First(std::size_t limit) const {
  std::vector<RunnerJob> first;
  for (const auto& [request, known] : jobs_) {
    if (first.size() == limit) break;
    first.push_back(known.job);
  }
  return first;
}

void KnownJobs::Defer(RunnerJob job) {
  bool is_there = std::ranges::find(deferred_, job.request, &RunnerJob::request) != deferred_.end();
  if (!is_there && !is_full()) deferred_.push_back(std::move(job));
}

}  // namespace nodepool::runners
