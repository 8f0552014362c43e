#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "async/event.h"
#include "runners/context.h"
#include "runners/set/run_watch.h"
#include "runners/set/set_session.h"
#include "sched/runners/run_step.h"

namespace nodepool::runners {

// One run, from the request for a node to the node's return (runners.md 8, 9, 11). Every step is written
// before the next one begins, so that another daemon goes on from the record.
class RunTask {
 public:
  // Everything outlives it. `record` is written already. `changed` is called when its state has changed.
  RunTask(SetContext& set, SetHealth& health, RunId id, RunnerRun record, std::function<void()> changed);
  ~RunTask();  // Live() has ended

  // Ends when the run is over and its record deleted. Ends early only by cancellation: the runner goes on.
  Task<> Live();

  const RunId& id() const { return id_; }
  const RunnerRun& record() const { return record_; }
  RunState state() const { return *record_.state; }
  // It counts for a waiting job: it has none, and is not about to end.
  bool is_free() const;
  bool has_node() const { return state() != RunState::kWanted && state() != RunState::kEnding; }
  // Its node has reported a job, and no message has named it.
  bool has_untold_job() const;
  bool has_job_of(const std::string& repository) const;
  bool is_phantom() const { return is_phantom_; }
  // Of the runner, as its node reports it; empty: not known.
  const std::string& version() const { return watch_.version(); }
  // The job that it has lost, once.
  std::optional<LostJob> TakeLost() { return std::exchange(lost_, std::nullopt); }

  // Its lease has changed.
  void Wake() { wake_.Set(); }
  // Messages about its runner.
  void JobStarted(const RunnerJob& job);
  void JobEnded(const std::string& result);
  // Writes what JobStarted has changed.
  Task<> Save();
  // Nobody needs it: it is taken back unless it has a job.
  void TakeBack();
  // Whether jobs wait for a runner.
  void JobsWait(bool do_wait);

 private:
  Task<> AwaitNode();
  Task<> MakeLease();
  Task<> Attend();
  Task<> AttendSteps();
  Task<bool> DoStep(sched::RunDecision decision);
  Task<> Register();
  std::int64_t KnownScaleSet() const;
  std::set<std::string> TakenHandles() const;
  void NoteOnline();
  Task<> NoteState(RunState state);
  Task<bool> RemoveRegistration();
  Task<> TakeBackFromNode(sched::RunDecision decision, bool& is_over);
  Task<> Finish();
  Task<> HoldIfFailed();
  Task<> RemoveLeftRegistration();
  void NoteLoss(std::string_view cause, const std::string& reason);
  void ReportFirstStep();
  Task<> MarkNode();
  Task<> Write();
  Task<> Pause(Duration pause);
  void EndBecause(std::string reason);
  bool HasNodeNow() const;
  sched::RunView View() const;
  sched::RunTimes Times() const;
  WallTime Now() const { return set_.context.loop.Now(); }

  SetContext& set_;
  SetHealth& health_;
  const RunId id_;
  RunnerRun record_;
  std::function<void()> changed_;
  log::Logger logger_;
  Event wake_{"a change of a run"};
  sched::RunView seen_;  // what node and service say; the rest of it is in the record
  RunWatch watch_;
  std::optional<LostJob> lost_;
  bool may_be_registered_;
  bool is_phantom_ = false;
  bool has_job_failed_ = false;
  bool is_marked_ = false;  // its node's record names the job
  bool is_first_step_told_ = false;
};

}  // namespace nodepool::runners
