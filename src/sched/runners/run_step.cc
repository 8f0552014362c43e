#include "sched/runners/run_step.h"

#include <fmt/format.h>

#include <algorithm>

namespace nodepool::sched {

namespace {

// The larger of both: the service's figures are 0 while its messages name jobs, and messages may be lost.
std::int64_t WaitingJobs(const RunnerCounts& counts) {
  std::int64_t counted = counts.statistics ? counts.statistics->assigned - counts.statistics->running : 0;
  return std::max<std::int64_t>(0, std::max(counted - counts.phantoms, counts.known_jobs));
}

std::int64_t CapacityTold(const RunnerCounts& counts, const RunnerLimits& limits) {
  std::int64_t with_node = counts.starting + counts.online + counts.busy;
  if (limits.is_draining) return counts.busy;
  if (limits.lacks_nodes) return std::min(with_node, limits.max_runners);
  std::int64_t all = with_node + counts.wanted;
  if (!limits.left_of_service) return limits.max_runners;
  return std::min(limits.max_runners, all + std::max<std::int64_t>(0, *limits.left_of_service));
}

}  // namespace

RunnerDemand DecideDemand(const RunnerCounts& counts, const RunnerLimits& limits) {
  RunnerDemand demand;
  demand.waiting = WaitingJobs(counts);
  demand.capacity = CapacityTold(counts, limits);
  std::int64_t free = counts.wanted + counts.starting + counts.online;
  std::int64_t needed = limits.is_draining ? 0 : demand.waiting + limits.idle;
  demand.surplus = std::max<std::int64_t>(0, free - needed);
  if (limits.is_draining || !limits.may_start) return demand;
  std::int64_t room = limits.max_runners - free - counts.busy;
  if (limits.left_of_service) room = std::min(room, *limits.left_of_service);
  demand.start = std::clamp<std::int64_t>(needed - free, 0, std::max<std::int64_t>(0, room));
  return demand;
}

std::string WhyJobsWait(const RunnerCounts& counts, const RunnerLimits& limits, const RunnerDemand& demand,
                        std::int64_t deferred) {
  if (demand.waiting + deferred <= 0) return "";
  if (limits.is_draining) return "the set is not configured any more, so nothing new is started";
  if (!limits.may_start) return "new runners are held back: see the fault of the set";
  std::int64_t on_the_way = counts.wanted + counts.starting + counts.online;
  bool are_enough = on_the_way + demand.start >= demand.waiting;
  bool is_full = counts.busy + on_the_way + demand.start >= limits.max_runners;
  if (!are_enough && is_full)
    return fmt::format("max-runners of the set, {}, is reached", limits.max_runners);
  if (!are_enough) return "max-runners of the service is reached";
  if (demand.waiting == 0)
    return fmt::format("max-per-repo is reached by the repositories of {} jobs", deferred);
  if (counts.wanted + demand.start > 0)
    return fmt::format("{} of their nodes are requested", counts.wanted + demand.start);
  return fmt::format("{} runners start, {} are online", counts.starting, counts.online);
}

std::int64_t PhantomsLeft(std::int64_t phantoms, const JobStatistics& statistics) {
  return statistics.assigned - statistics.running < phantoms ? 0 : phantoms;
}

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
