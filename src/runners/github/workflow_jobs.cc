#include "runners/github/workflow_jobs.h"

#include <algorithm>

#include "base/text.h"

namespace nodepool::runners::github {
namespace {

constexpr Duration kListsAreLate = std::chrono::minutes(1);
constexpr Duration kEndKept = std::chrono::hours(1);
constexpr Duration kLongestKept = std::chrono::hours(24);

}  // namespace

void WorkflowJobs::Note(WorkflowJob job, WallTime now) {
  bool is_old = job.job.queued_time && now - *job.job.queued_time > kLongestKept &&
                job.state == WorkflowJobState::kQueued;
  if (is_old) return;
  if (jobs_.size() >= kMostJobs) Drop(now);
  auto [entry, is_new] = jobs_.try_emplace(job.job.request);
  Known& known = entry->second;
  known.seen = std::max(known.seen, now);
  bool is_back = std::exchange(known.is_missing, false);
  if (Advance(known.job, job) || is_back) known.version = ++version_;
  if (is_new && !known.job.job.assigned_time) known.job.job.assigned_time = now;
}

void WorkflowJobs::Count(const std::string& repository, const std::vector<WorkflowJob>& listed,
                         WallTime asked, WallTime now) {
  Drop(now);
  std::set<std::int64_t> numbers;
  for (const WorkflowJob& job : listed) {
    numbers.insert(job.job.request);
    Note(job, now);
  }
  for (auto& [number, known] : jobs_) {
    bool may_be_over = known.job.state != WorkflowJobState::kCompleted && !known.is_missing &&
                       Lower(known.job.job.repository) == Lower(repository) &&
                       asked - known.seen > kListsAreLate;
    if (!may_be_over || numbers.contains(number)) continue;
    known.is_missing = true;
    known.version = ++version_;
  }
}

void WorkflowJobs::Drop(WallTime now) {
  std::erase_if(jobs_, [now](const auto& entry) {
    const Known& known = entry.second;
    bool is_over = known.is_missing || known.job.state == WorkflowJobState::kCompleted;
    return now - known.seen > (is_over ? kEndKept : kLongestKept);
  });
  while (jobs_.size() >= kMostJobs) jobs_.erase(jobs_.begin());  // numbers grow
}

const WorkflowJob* WorkflowJobs::Find(std::int64_t job) const {
  auto found = jobs_.find(job);
  return found == jobs_.end() ? nullptr : &found->second.job;
}

std::vector<WaitingJob> WorkflowJobs::Waiting(const std::vector<std::string>& set_labels) const {
  std::vector<WaitingJob> waiting;
  for (const auto& [number, known] : jobs_) {
    bool waits = known.job.state == WorkflowJobState::kQueued && !known.is_missing;
    if (waits && Fits(known.job.labels, set_labels))
      waiting.push_back({.job = known.job.job, .labels = known.job.labels});
  }
  return waiting;
}

std::vector<const WorkflowJob*> WorkflowJobs::WithRunnerSince(std::uint64_t version) const {
  std::vector<const WorkflowJob*> changed;
  for (const auto& [number, known] : jobs_) {
    if (known.version > version && !known.job.runner_name.empty()) changed.push_back(&known.job);
  }
  return changed;
}

std::set<std::string> WorkflowJobs::RepositoriesSince(WallTime time) const {
  std::set<std::string> repositories;
  for (const auto& [number, known] : jobs_) {
    if (known.seen >= time) repositories.insert(known.job.job.repository);
  }
  return repositories;
}

bool WorkflowJobs::has_waiting() const {
  return std::ranges::any_of(jobs_, [](const auto& entry) {
    return entry.second.job.state == WorkflowJobState::kQueued && !entry.second.is_missing;
  });
}

}  // namespace nodepool::runners::github
