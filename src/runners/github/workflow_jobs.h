#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/workflow_job.h"
#include "runners/polled/polled_sets.h"

namespace nodepool::runners::github {

// The jobs of a service's repositories, by what webhooks and lists say of them, in whatever order that comes
// (runners.md 3). Pure; what is over goes after an hour, everything after a day.
class WorkflowJobs {
 public:
  // What a delivery or a list said at `now`; what is as old as what is known, or older, changes nothing.
  void Note(WorkflowJob job, WallTime now);
  // A list of the repository's jobs that wait or run, asked for at `asked`. One that is missing there is
  // over, unless it was seen a minute before or later: lists are late.
  void Count(const std::string& repository, const std::vector<WorkflowJob>& listed, WallTime asked,
             WallTime now);

  // Grows with each change of a state.
  std::uint64_t version() const { return version_; }
  // Null: it is not known.
  const WorkflowJob* Find(std::int64_t job) const;
  // Those that wait and fit the set, the oldest first.
  std::vector<WaitingJob> Waiting(const std::vector<std::string>& set_labels) const;
  // Those whose state has changed since the version, and that have, or had, a runner.
  std::vector<const WorkflowJob*> WithRunnerSince(std::uint64_t version) const;
  // Those that had a job that was seen since then.
  std::set<std::string> RepositoriesSince(WallTime time) const;
  bool has_waiting() const;

 private:
  struct Known {
    WorkflowJob job;
    WallTime seen{};            // last
    std::uint64_t version = 0;  // of the change to its state
    bool is_missing = false;    // in the last list
  };
  static constexpr std::size_t kMostJobs = 20'000;

  void Drop(WallTime now);

  std::map<std::int64_t, Known> jobs_;  // by number
  std::uint64_t version_ = 0;
};

}  // namespace nodepool::runners::github
