#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "async/task_group.h"
#include "runners/context.h"
#include "sched/runners/run_step.h"

namespace nodepool::runners {

// Watches one runner on its node, over sessions with the node that may end and begin again, and looks it up
// at the service while it has no job (runners.md 8, 9).
class RunWatch {
 public:
  // What is seen goes to `seen`; `changed` is called after each change. Everything outlives it; `run` is the
  // run's record, which may change.
  RunWatch(SetContext& set, RunId id, const RunnerRun& run, sched::RunView& seen,
           std::function<void()> changed);
  ~RunWatch();  // call End() first

  // Reads the node's record and begins. A node without a usable record counts as one that has failed.
  Task<> Begin();
  // The sessions end; the runner goes on.
  Task<> End();

  // Gives the runner's configuration to the node, once that has said that it waits for it. Nothing when it
  // does not any more. Error(kRetry): the session is over.
  Task<> HandOver(std::string configuration);
  // Ends the runner's processes, where that can be done within a short time.
  Task<> EndRunner();

  // When the node first reported that the runner is online.
  std::optional<WallTime> online_time() const { return online_time_; }
  const std::string& version() const { return version_; }      // of the runner; empty: not known
  const std::string& complaint() const { return complaint_; }  // the last one of the node; short
  bool is_deprecated() const { return is_deprecated_; }        // the service refuses its version

 private:
  Task<std::optional<RunnerPlace>> FindPlace();
  Task<> Watch(RunnerPlace place);
  Task<> WatchOnce(RunnerPlace place);
  void Take(const NodeReport& report);
  Task<> LookUp();
  WallTime Now() const { return set_.context.loop.Now(); }

  SetContext& set_;
  const RunId id_;
  const RunnerRun& run_;
  sched::RunView& seen_;
  std::function<void()> changed_;
  std::shared_ptr<NodeSession> session_;
  std::optional<RunnerPlace> place_;
  std::optional<WallTime> online_time_;
  std::string version_;
  std::string complaint_;
  bool is_deprecated_ = false;
  TaskGroup tasks_;
};

// Keeps the leases of a set alive, and removes what nothing is left of: registrations and leases of ours
// without a run (runners.md 11), and what webhooks said of jobs long ago. What is not ours is never touched.
class SetSweep {
 public:
  // The leases and the runners' names of all runs that there are now.
  struct Known {
    std::set<LeaseId> leases;
    std::set<std::string> runner_names;
  };

  // Everything outlives it.
  SetSweep(SetContext& set, std::function<Known()> known) : set_(set), known_(std::move(known)) {}

  // Both work until they are cancelled.
  Task<> RenewLeases();
  Task<> Run();

 private:
  Task<> RenewOnce();
  Task<> SweepRegistrations();
  Task<> SweepLeases();
  Task<> SweepHookedJobs();
  bool IsOurs(const std::string& runner_name) const;

  SetContext& set_;
  std::function<Known()> known_;
  std::map<std::string, WallTime> offline_since_;  // registrations without a record, by runner's name
};

}  // namespace nodepool::runners
