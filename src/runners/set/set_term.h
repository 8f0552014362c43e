#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/task_group.h"
#include "base/subscription.h"
#include "runners/context.h"
#include "runners/set/run_task.h"
#include "runners/set/run_watch.h"
#include "runners/set/set_session.h"

namespace nodepool::runners {

// A set's daemon, from its election to the loss of the leadership: listens to the service, decides how many
// runners there are, and has their runs (runners.md 7, 11).
class SetTerm {
 public:
  explicit SetTerm(SetContext& set);
  ~SetTerm();  // call Stop() first

  // Works until it is cancelled, or until a set that is not configured any more has drained.
  Task<> Run();
  // Closes the session; runners go on.
  Task<> Stop();

  // The settings have changed.
  void Reconfigured();

 private:
  // A job whose run is over, and that the figures still count among those that wait.
  struct EndedJob {
    WallTime begun;
    bool is_untold;  // no message has named it
  };

  void Adopt();
  void Begin(RunId id, RunnerRun record);
  Task<> Live(RunId id);
  Task<> HandleBatch(MessageSession& session, MessageBatch batch);
  void HandleJob(const JobMessage& message, std::vector<RunnerJob>& available, std::vector<RunId>& told);
  Task<std::vector<RunnerJob>> Permitted(std::vector<RunnerJob> jobs);
  Task<> Acquire(MessageSession& session, std::vector<RunnerJob> jobs);
  void NoteAssigned(const RunnerJob& job);
  bool MayHaveMore(const std::string& repository) const;
  void NoteStatistics(const sched::JobStatistics& statistics, WallTime as_of);
  sched::RunnerCounts Counts() const;
  sched::RunnerLimits Limits() const;
  Task<> DecideForEver();
  Task<> Decide();
  Task<> Start(sched::RunnerDemand demand);
  Task<> StartWithinServiceLimit();
  Task<bool> StartUnderLock();
  Task<> StartRun();
  void TakeBackSurplus(std::int64_t surplus);
  bool TakeBackYoungest(RunState state);
  Task<> WriteRecord();
  void KeepLost(RunTask& run);
  void NoteLostJobs();
  std::vector<std::string> Warnings();
  SetSweep::Known KnownNow() const;
  void Report();
  bool HasDrained() const;
  Task<> RemoveSet();
  RunTask* FindByName(const std::string& runner_name);

  SetContext& set_;
  SetHealth health_;
  RunnerSetRecord record_;
  std::string written_;  // the record, as last written
  KnownJobs jobs_;
  std::optional<sched::JobStatistics> statistics_;
  WallTime statistics_time_{};   // when they were true
  std::vector<EndedJob> ended_;  // begun since then
  WallTime heard_at_{};          // when the service was asked for messages last
  std::int64_t phantoms_ = 0;
  std::optional<WallTime> phantoms_since_;
  std::optional<WallTime> surplus_since_;
  std::int64_t capacity_ = 0;
  bool is_due_soon_ = false;  // another set was deciding
  std::map<RunId, std::unique_ptr<RunTask>> runs_;
  bool has_unlimited_jobs_ = false;  // max-per-repo does not hold
  std::string last_public_;          // repository that was named last
  Event wake_{"a change of a set of runners"};
  Event drained_{"the end of a set's runs"};
  Gate deciding_{1};
  SetSession session_;
  SetSweep sweep_;
  RunnerVersions versions_;
  TaskGroup tasks_;
  Subscription leases_;
};

}  // namespace nodepool::runners
