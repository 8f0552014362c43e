#include "sched/runners/run_step.h"

#include <algorithm>

namespace nodepool::sched {
namespace {

constexpr Duration kUnreachable = std::chrono::seconds(60);  // before its start
constexpr Duration kGhost = std::chrono::minutes(2);
constexpr Duration kEndGrace = std::chrono::minutes(5);

RunDecision EndRun(std::string_view reason) { return {.step = RunStep::kEnd, .reason = reason}; }
RunDecision TakeBackRun(std::string_view reason) { return {.step = RunStep::kTakeBack, .reason = reason}; }
RunDecision WaitUntil(WallTime until) { return {.step = RunStep::kWait, .until = until}; }

bool IsBefore(RunState state, RunState other) { return static_cast<int>(state) < static_cast<int>(other); }

RunDecision BeforeStart(const RunView& view, const RunTimes& times, WallTime now) {
  if (view.is_surplus) return TakeBackRun("nobody needs it any more");
  if (view.has_failed) return TakeBackRun("the node cannot start it");
  WallTime due = view.node_time + times.start;
  if (view.unreachable_since) due = std::min(due, *view.unreachable_since + kUnreachable);
  if (now >= due)
    return TakeBackRun(view.unreachable_since ? "the node cannot be reached by ssh"
                                              : "the runner did not start in time");
  // A configuration that was made for another session is lost, and is made again.
  return view.is_ready && !view.is_handed_over ? RunDecision{.step = RunStep::kRegister} : WaitUntil(due);
}

RunDecision BeforeOnline(const RunView& view, const RunTimes& times, WallTime now) {
  WallTime due = view.node_time + times.start;
  return now >= due ? TakeBackRun("the runner was not online in time") : WaitUntil(due);
}

RunDecision WithoutJob(const RunView& view, const RunTimes& times, WallTime now) {
  if (view.is_surplus) return TakeBackRun("nobody needs it any more");
  WallTime due = view.awaits_since ? *view.awaits_since + times.pickup : WallTime::max();
  if (view.gone_since) {
    WallTime ghost = *view.gone_since + kGhost;
    if (now >= ghost) return EndRun("its registration is gone, and it runs no job");
    due = std::min(due, ghost);
  }
  if (now < due) return WaitUntil(due);
  RunDecision decision = TakeBackRun("no job came");
  decision.is_phantom = true;
  return decision;
}

RunDecision WithJob(const RunView& view, const RunTimes& times, WallTime now) {
  WallTime due = view.job_time + times.job;
  WallTime next = WallTime::max();
  if (now >= due) {
    if (times.enforces_job) return EndRun("its job took longer than job-timeout");
    if (!view.is_warned) return {.step = RunStep::kWarnOfJob};
  } else {
    next = due;
  }
  if (view.told_end) {
    WallTime grace = *view.told_end + kEndGrace;
    if (now >= grace) return EndRun("its job is over, but its process went on");
    next = std::min(next, grace);
  }
  return WaitUntil(next);
}

}  // namespace

RunDecision DecideRun(const RunView& view, const RunTimes& times, WallTime now) {
  if (!view.has_node) return EndRun("its node is gone");
  if (view.status) return EndRun("its process has ended");
  bool was_started = view.is_started || !IsBefore(view.state, RunState::kStarted);
  if (view.is_ready && !IsBefore(view.state, RunState::kStarted))
    return EndRun("nothing of it is left on the node");
  if (!was_started && !view.is_told_job) return BeforeStart(view, times, now);
  if (IsBefore(view.state, RunState::kStarted)) return {.step = RunStep::kNoteStarted};
  bool has_job = view.has_worker || view.is_told_job || view.told_end;
  if (has_job && view.state != RunState::kJob) return {.step = RunStep::kNoteJob};
  if (view.is_online && view.state == RunState::kStarted) return {.step = RunStep::kNoteOnline};
  if (view.state == RunState::kJob) return WithJob(view, times, now);
  return view.state == RunState::kOnline ? WithoutJob(view, times, now) : BeforeOnline(view, times, now);
}

}  // namespace nodepool::sched
