#include "sched/runners/run_step.h"

#include <gtest/gtest.h>

namespace nodepool::sched {

namespace {

using std::chrono::minutes;
using std::chrono::seconds;

RunnerLimits Limits(std::int64_t max = 10) { return {.max_runners = max}; }

TEST(DemandTest, WaitingJobsGetRunners) {
  RunnerCounts counts{.statistics = JobStatistics{.assigned = 5, .running = 2}, .wanted = 1, .busy = 2};
  RunnerDemand demand = DecideDemand(counts, Limits());
  EXPECT_EQ(demand.waiting, 3);
  EXPECT_EQ(demand.start, 2);
  EXPECT_EQ(demand.surplus, 0);
}

// RUN-31
TEST(DemandTest, JobsInMessagesCountWhenStatisticsSayNone) {
  RunnerCounts counts{.statistics = JobStatistics(), .known_jobs = 2};
  EXPECT_EQ(DecideDemand(counts, Limits()).start, 2);
  counts.statistics.reset();
  EXPECT_EQ(DecideDemand(counts, Limits()).start, 2);
}

// RUN-34
TEST(DemandTest, PhantomsGetNone) {
  RunnerCounts counts{.statistics = JobStatistics{.assigned = 3}, .phantoms = 3};
  EXPECT_EQ(DecideDemand(counts, Limits()).start, 0);
  counts.statistics->assigned = 4;
  EXPECT_EQ(DecideDemand(counts, Limits()).start, 1);
  EXPECT_EQ(PhantomsLeft(3, {.assigned = 3}), 3);
  EXPECT_EQ(PhantomsLeft(3, {.assigned = 4, .running = 2}), 0);
}

// RUN-35
TEST(DemandTest, FreeRunnersThatNobodyNeedsAreSurplus) {
  RunnerCounts counts{.statistics = JobStatistics(), .wanted = 1, .starting = 1, .online = 2, .busy = 3};
  RunnerDemand demand = DecideDemand(counts, Limits());
  EXPECT_EQ(demand.surplus, 4);
  EXPECT_EQ(demand.start, 0);
}

// RUN-36
TEST(DemandTest, IdleRunnersAreKept) {
  RunnerLimits limits = Limits();
  limits.idle = 2;
  EXPECT_EQ(DecideDemand({.online = 1}, limits).start, 1);
  EXPECT_EQ(DecideDemand({.online = 3}, limits).surplus, 1);
}

// RUN-37
TEST(DemandTest, LimitsOfSetAndService) {
  RunnerCounts counts{.known_jobs = 20, .busy = 3};
  RunnerDemand demand = DecideDemand(counts, Limits());
  EXPECT_EQ(demand.start, 7);
  EXPECT_EQ(demand.capacity, 10);
  RunnerLimits limits = Limits();
  limits.left_of_service = 2;
  demand = DecideDemand(counts, limits);
  EXPECT_EQ(demand.start, 2);
  EXPECT_EQ(demand.capacity, 5);
  limits.left_of_service = -1;
  EXPECT_EQ(DecideDemand(counts, limits).start, 0);
}

// RUN-30
TEST(DemandTest, WithoutNodesTheServiceIsToldWhatThereIs) {
  RunnerLimits limits = Limits();
  limits.lacks_nodes = true;
  EXPECT_EQ(DecideDemand({.wanted = 4, .online = 1, .busy = 2}, limits).capacity, 3);
}

// RUN-72
TEST(DemandTest, ASetThatDrainsStartsNothing) {
  RunnerLimits limits = Limits();
  limits.is_draining = true;
  RunnerDemand demand = DecideDemand({.known_jobs = 5, .online = 1, .busy = 2}, limits);
  EXPECT_EQ(demand.start, 0);
  EXPECT_EQ(demand.surplus, 1);
  EXPECT_EQ(demand.capacity, 2);
}

TEST(DemandTest, NothingStartsWhileStartsAreHeldBack) {
  RunnerLimits limits = Limits();
  limits.may_start = false;
  EXPECT_EQ(DecideDemand({.known_jobs = 5}, limits).start, 0);
}

// RUN-73
TEST(DemandTest, WhyJobsWait) {
  auto why = [](RunnerCounts counts, RunnerLimits limits, std::int64_t deferred = 0) {
    return WhyJobsWait(counts, limits, DecideDemand(counts, limits), deferred);
  };
  EXPECT_EQ(why({}, {.max_runners = 4}), "");
  EXPECT_EQ(why({.known_jobs = 2}, {.max_runners = 4}), "2 of their nodes are requested");
  EXPECT_EQ(why({.known_jobs = 2, .starting = 1, .online = 1}, {.max_runners = 4}),
            "1 runners start, 1 are online");
  EXPECT_EQ(why({.known_jobs = 2, .busy = 4}, {.max_runners = 4}), "max-runners of the set, 4, is reached");
  EXPECT_EQ(why({.known_jobs = 2}, {.max_runners = 4, .left_of_service = 0}),
            "max-runners of the service is reached");
  EXPECT_EQ(why({.known_jobs = 2}, {.max_runners = 4, .may_start = false}),
            "new runners are held back: see the fault of the set");
  EXPECT_EQ(why({.known_jobs = 2}, {.max_runners = 4, .is_draining = true}),
            "the set is not configured any more, so nothing new is started");
  EXPECT_EQ(why({}, {.max_runners = 4}, 3), "max-per-repo is reached by the repositories of 3 jobs");
}

const WallTime kStart = FromSeconds(1'700'000'000);

RunView View(RunState state) { return {.state = state, .node_time = kStart, .job_time = kStart}; }
RunStep StepOf(const RunView& view, Duration after = {}) {
  return DecideRun(view, RunTimes(), kStart + after).step;
}

// RUN-40: the registration is made once the node waits for it.
TEST(RunStepTest, NodeFirstRegistrationSecond) {
  RunView view = View(RunState::kNode);
  RunDecision decision = DecideRun(view, RunTimes(), kStart);
  EXPECT_EQ(decision.step, RunStep::kWait);
  EXPECT_EQ(decision.until, kStart + seconds(120));
  view.is_ready = true;
  EXPECT_EQ(StepOf(view), RunStep::kRegister);
  view.state = RunState::kRegistered;
  view.is_handed_over = true;
  EXPECT_EQ(StepOf(view), RunStep::kWait);
}

// RUN-56: a configuration that was not handed over is lost with its daemon, and made again.
TEST(RunStepTest, ASuccessorRegistersAgainWhereNothingWasStarted) {
  RunView view = View(RunState::kRegistered);
  EXPECT_EQ(StepOf(view), RunStep::kWait);
  view.is_ready = true;
  EXPECT_EQ(StepOf(view), RunStep::kRegister);
  view.is_ready = false;
  view.is_started = true;
  EXPECT_EQ(StepOf(view), RunStep::kNoteStarted);
}

TEST(RunStepTest, FromTheStartToTheJob) {
  RunView view = View(RunState::kRegistered);
  view.is_started = true;
  EXPECT_EQ(StepOf(view), RunStep::kNoteStarted);
  view.state = RunState::kStarted;
  EXPECT_EQ(StepOf(view), RunStep::kWait);
  view.is_online = true;
  EXPECT_EQ(StepOf(view), RunStep::kNoteOnline);
  view.state = RunState::kOnline;
  EXPECT_EQ(DecideRun(view, RunTimes(), kStart).until, WallTime::max());
  view.has_worker = true;
  EXPECT_EQ(StepOf(view), RunStep::kNoteJob);
  view.state = RunState::kJob;
  EXPECT_EQ(DecideRun(view, RunTimes(), kStart).until, kStart + std::chrono::hours(6));
  view.status = 0;
  EXPECT_EQ(StepOf(view), RunStep::kEnd);
}

// RUN-41
TEST(RunStepTest, ANodeThatCannotBeReachedIsGivenBack) {
  RunView view = View(RunState::kNode);
  view.unreachable_since = kStart;
  EXPECT_EQ(StepOf(view, seconds(59)), RunStep::kWait);
  EXPECT_EQ(StepOf(view, seconds(60)), RunStep::kTakeBack);
  view.unreachable_since.reset();
  view.has_failed = true;
  EXPECT_EQ(StepOf(view), RunStep::kTakeBack);
}

// RUN-43
TEST(RunStepTest, ARunnerThatIsNotOnlineInTimeIsTakenBack) {
  RunView view = View(RunState::kStarted);
  EXPECT_EQ(StepOf(view, seconds(119)), RunStep::kWait);
  EXPECT_EQ(StepOf(view, seconds(120)), RunStep::kTakeBack);
}

// RUN-34
TEST(RunStepTest, ARunnerWithoutAJobIsAPhantoms) {
  RunView view = View(RunState::kOnline);
  EXPECT_EQ(StepOf(view, minutes(60)), RunStep::kWait);
  view.awaits_since = kStart;
  EXPECT_EQ(StepOf(view, seconds(299)), RunStep::kWait);
  RunDecision decision = DecideRun(view, RunTimes(), kStart + seconds(300));
  EXPECT_EQ(decision.step, RunStep::kTakeBack);
  EXPECT_TRUE(decision.is_phantom);
}

// RUN-51, RUN-52
TEST(RunStepTest, AGhostIsEndedAndAWorkerIsLeftAlone) {
  RunView view = View(RunState::kOnline);
  view.gone_since = kStart;
  EXPECT_EQ(StepOf(view, seconds(119)), RunStep::kWait);
  EXPECT_EQ(StepOf(view, minutes(2)), RunStep::kEnd);
  view.has_worker = true;
  EXPECT_EQ(StepOf(view, minutes(2)), RunStep::kNoteJob);
  view.state = RunState::kJob;
  EXPECT_EQ(StepOf(view, minutes(2)), RunStep::kWait);
}

// RUN-47: also when the service says that the job is over.
TEST(RunStepTest, TheProcessEndsFirst) {
  RunView view = View(RunState::kJob);
  view.told_end = kStart;
  EXPECT_EQ(DecideRun(view, RunTimes(), kStart).until, kStart + minutes(5));
  EXPECT_EQ(StepOf(view, minutes(5)), RunStep::kEnd);
}

// RUN-54
TEST(RunStepTest, ALongJobIsWarnedOfOrEnded) {
  RunView view = View(RunState::kJob);
  RunTimes times{.job = minutes(1)};
  EXPECT_EQ(DecideRun(view, times, kStart + minutes(1)).step, RunStep::kWarnOfJob);
  view.is_warned = true;
  EXPECT_EQ(DecideRun(view, times, kStart + minutes(1)).step, RunStep::kWait);
  times.enforces_job = true;
  EXPECT_EQ(DecideRun(view, times, kStart + minutes(1)).step, RunStep::kEnd);
}

// RUN-53, RUN-55
TEST(RunStepTest, WithoutItsNodeARunEnds) {
  for (RunState state : {RunState::kNode, RunState::kRegistered, RunState::kOnline, RunState::kJob}) {
    RunView view = View(state);
    view.has_node = false;
    EXPECT_EQ(StepOf(view), RunStep::kEnd);
  }
}

// RUN-35
TEST(RunStepTest, SurplusIsTakenBackUnlessItHasAJob) {
  for (RunState state : {RunState::kNode, RunState::kOnline}) {
    RunView view = View(state);
    view.is_surplus = true;
    EXPECT_EQ(StepOf(view), RunStep::kTakeBack);
  }
  RunView view = View(RunState::kJob);
  view.is_surplus = true;
  EXPECT_EQ(StepOf(view), RunStep::kWait);
}

TEST(RunStepTest, ANodeThatWasMadeAnewEndsTheRun) {
  RunView view = View(RunState::kJob);
  view.is_ready = true;
  EXPECT_EQ(StepOf(view), RunStep::kEnd);
}

}  // namespace

}  // namespace nodepool::sched
