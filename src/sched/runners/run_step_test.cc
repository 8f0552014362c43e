#include "sched/runners/run_step.h"

#include <gtest/gtest.h>

namespace nodepool::sched {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

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
