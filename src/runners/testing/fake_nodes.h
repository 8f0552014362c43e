#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "async/task_group.h"
#include "runners/node/runner_nodes.h"
#include "runners/testing/fake_github.h"

namespace nodepool::runners::testing {

// Nodes in memory on which runners of a FakeGithub run, in virtual time; they outlive the daemons.
class FakeNodes : public RunnerNodes {
 public:
  FakeNodes(Loop& loop, FakeGithub& github);

  std::unique_ptr<NodeSession> Open(RunnerPlace place) override;
  Task<> EndRunner(RunnerPlace place) override;

  // All sessions end, now and whenever the daemon begins one.
  void BreakSessions();
  // The machine is gone, with all that runs on it.
  void Destroy(const std::string& node);
  Task<> Stop() { return tasks_.Stop(); }

  std::size_t running() const;
  // The most runners that were ever started on one node.
  int most_started() const;
  std::size_t started_count() const { return started_count_; }

  // --- What goes wrong -------------------------------------------------------
  std::function<bool()> refuses = [] { return false; };    // the script fails
  std::function<bool()> is_silent = [] { return false; };  // the runner never goes online
  std::function<bool()> is_ghost = [] { return false; };   // it forgets its job
  std::function<bool()> dies = [] { return false; };       // its process ends in the job
  bool is_unreachable = false;
  int end_status = 0;
  std::string result = "succeeded";  // of the jobs
  std::string version = "2.340.0";   // of the runner

 private:
  friend class FakeSession;
  struct Process {
    bool has_started = false;
    bool is_online = false;
    bool has_job = false;
    std::optional<int> status;
    bool is_killed = false;
    int starts = 0;
  };

  Task<> RunProcess(std::shared_ptr<Process> process, std::int64_t runner);
  static void End(Process& process, int status);

  Loop& loop_;
  FakeGithub& github_;
  std::map<std::string, std::shared_ptr<Process>> processes_;  // by run
  std::map<std::string, std::set<std::string>> runs_of_node_;
  std::set<std::string> destroyed_;
  std::uint64_t broken_ = 0;
  std::size_t started_count_ = 0;
  TaskGroup tasks_;
};

}  // namespace nodepool::runners::testing
