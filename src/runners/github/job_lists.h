#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runners/github/repositories.h"
#include "runners/github/workflow_jobs.h"

namespace nodepool::runners::github {

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
