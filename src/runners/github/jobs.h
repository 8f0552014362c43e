#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/job.h"
#include "runners/github/calls.h"
#include "runners/scale_sets.h"

namespace nodepool::runners::github {

// Reading the Actions service's JSON; pure (runners.md 2.5 to 2.7). Unknown members are left out, missing
// ones are empty, and members of another type as if missing.

// nullopt: not a set with an id.
std::optional<ScaleSet> ReadSet(const boost::json::value& value);
// nullopt: a member that is needed is missing.
std::optional<MessageSession> ReadSession(const boost::json::value& value);
std::optional<sched::JobStatistics> ReadStatistics(const boost::json::value& parent);
// A message of the queue; `site` begins the addresses of runs: "https://github.com". nullopt: it has no id. A
// body that cannot be read gives a batch without jobs.
std::optional<MessageBatch> ReadBatch(const boost::json::value& value, const std::string& site);
std::optional<RegisteredRunner> ReadRunner(const boost::json::value& value);
// The new runner of an answer, with its configuration, which is below `key`. Error(kRetry): there is none.
Registration ReadRegistration(const boost::json::value& answer, std::string_view key);

// At most so many jobs of one message are read.
inline constexpr std::size_t kMaxJobsOfBatch = 1000;

// Whose code a job runs: what GitHub's REST API says about repositories and runs, each asked for once in a
// while (runners.md 6). Errors: those of Login::Send().
class Repositories {
 public:
  // Both outlive it.
  Repositories(Loop& loop, Login& login) : loop_(loop), login_(login) {}

  // Whether everybody may read the repository, "owner/name"; asked for once an hour.
  Task<bool> IsPublic(std::string repository);
  // Whether the run is of a fork, or cannot be found; asked for once.
  Task<bool> IsOfFork(std::string repository, std::int64_t run);
  // What a list says of a run, whose `head` is the repository of its code; empty: that is gone.
  void NoteRun(const std::string& repository, std::int64_t run, const std::string& head);
  // The newest version of the runner for Linux that those may download whose runners are at this path; empty:
  // it does not say.
  Task<std::string> NewestRunner(std::string actions);
  // Those that the app is installed for, at most 1000.
  Task<std::vector<std::string>> Installed();

 private:
  struct Visibility {
    bool is_public = false;
    SteadyTime until{};  // known so long
  };

  Loop& loop_;
  Login& login_;
  std::map<std::string, Visibility> visibilities_;                     // by repository
  std::map<std::pair<std::string, std::int64_t>, bool> are_of_forks_;  // by repository and run
};

// "/repos/octo/app" of "octo/app".
std::string RepositoryPath(const std::string& repository);

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

// Lists of the jobs of repositories that wait or run (runners.md 3). What has not changed since the last list
// is asked for with If-None-Match, which does not count against GitHub's limits.
class JobLists {
 public:
  // All of them outlive it. What a list says about its runs goes to `repositories`.
  JobLists(Login& login, Repositories& repositories) : login_(login), repositories_(repositories) {}

  struct Listed {
    std::vector<WorkflowJob> jobs;
    bool is_whole = true;  // false: there are more than are read
  };
  // Errors: those of Login::Send(), by the first call that fails.
  Task<Listed> JobsOf(std::string repository);

  // How many calls there were, the unchanged ones included.
  std::int64_t call_count() const { return call_count_; }

  // What its calls count as.
  static constexpr std::string_view kKind = "jobs";

 private:
  // A page of a list of runs or of jobs, as it was answered last.
  struct Page {
    std::string etag;
    std::vector<std::int64_t> runs;
    std::vector<WorkflowJob> jobs;
    std::size_t entries = 0;
    std::uint64_t round = 0;  // in which it was used last
  };
  using Pages = std::map<std::string, Page>;  // by target

  Task<> AddRuns(const std::string& repository, std::string status, std::vector<std::int64_t>& runs,
                 bool& is_whole);
  Task<> AddJobs(const std::string& repository, std::int64_t run, Listed& listed);
  // The page as it is now; copied, as others may be read meanwhile.
  Task<Page> Read(const std::string& repository, std::string target);
  void Parse(const std::string& repository, const net::HttpReply& reply, Page& page);

  Login& login_;
  Repositories& repositories_;
  std::map<std::string, Pages> pages_;  // by repository
  std::uint64_t round_ = 0;
  std::int64_t call_count_ = 0;
};

}  // namespace nodepool::runners::github
