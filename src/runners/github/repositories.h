#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runners/github/login.h"

namespace nodepool::runners::github {

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

}  // namespace nodepool::runners::github
