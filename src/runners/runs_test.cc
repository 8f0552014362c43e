// Runs: a runner on its node, and what goes wrong with it.

#include "runners/runners_fixture_for_test.h"

namespace nodepool::runners {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

// RUN-41
TEST_F(RunnersTest, NodesThatCannotBeReachedAreGivenBack) {
  nodes_.is_unreachable = true;
  StartDaemon();
  github_.Queue();
  ASSERT_TRUE(Await([this] { return nodes_made_ == 2; }));
  EXPECT_TRUE(github_.runners().empty());
  ASSERT_TRUE(Await([this] { return !SetRecord().fault.empty(); }));
  EXPECT_THAT(SetRecord().fault, HasSubstr("connection refused"));
  nodes_.is_unreachable = false;
  EXPECT_TRUE(AwaitAllDone());
  EXPECT_TRUE(Await([this] { return SetRecord().fault.empty(); }));
}

// RUN-42
TEST_F(RunnersTest, RequestsThatFailAreShownAndTriedAgain) {
  pool_fails_ = true;
  StartDaemon();
  github_.Queue();
  ASSERT_TRUE(Await([this] { return !SetRecord().fault.empty(); }));
  EXPECT_THAT(SetRecord().fault, HasSubstr("no node of label small"));
  pool_fails_ = false;
  EXPECT_TRUE(AwaitAllDone());
}

// RUN-43
TEST_F(RunnersTest, ARunnerThatIsNotOnlineIsReplaced) {
  int silent = 0;
  nodes_.is_silent = [&] { return silent++ == 0; };
  StartDaemon();
  github_.Queue();
  ASSERT_TRUE(AwaitAllDone());
  EXPECT_EQ(nodes_made_, 2);
  EXPECT_TRUE(Await([this] { return IsClean(); }));
}

// RUN-44
TEST_F(RunnersTest, ARefusedVersionStopsTheSet) {
  nodes_.end_status = 7;
  nodes_.is_silent = [] { return false; };
  StartDaemon();
  ASSERT_TRUE(Await([this] { return SetRecord().state == "listening"; }));
  github_.Queue();
  // Its registration vanishes at once, as a version that is refused ends its runner before it is online.
  ASSERT_TRUE(Await([this] { return nodes_.started_count() == 1; }));
  github_.RemoveRegistration(Runs().front().runner_name);
  ASSERT_TRUE(Await([this] { return SetRecord().fault.find("version") != std::string::npos; }));
  std::size_t made = nodes_made_;
  time_.Advance(minutes(9));
  EXPECT_EQ(nodes_made_, made);
  nodes_.end_status = 0;
  EXPECT_TRUE(AwaitAllDone());
}

// RUN-46, RUN-49
TEST_F(RunnersTest, BrokenSessionsDisturbNoJob) {
  StartDaemon();
  github_.Queue(minutes(5));
  ASSERT_TRUE(Await([this] { return github_.CountJobs(Job::State::kRunning) == 1; }));
  for (int i = 0; i < 5; ++i) {
    nodes_.BreakSessions();
    time_.Advance(seconds(20));
  }
  ASSERT_TRUE(AwaitAllDone());
  EXPECT_EQ(nodes_.most_started(), 1);
  EXPECT_TRUE(Await([this] { return IsClean(); }));
}

// RUN-51
TEST_F(RunnersTest, AGhostIsEnded) {
  int ghosts = 0;
  nodes_.is_ghost = [&] { return ghosts++ == 0; };
  config::RunnerSet set = Set();
  set.idle = 1;
  services_ = {Service({set})};
  StartDaemon();
  ASSERT_TRUE(Await([this] { return !Runs().empty() && Runs().front().state == RunState::kOnline; }));
  std::string ghost = Runs().front().runner_name;
  github_.RemoveRegistration(ghost);
  time_.Advance(seconds(110));
  EXPECT_EQ(Runs().front().runner_name, ghost);
  EXPECT_TRUE(Await([&] { return Runs().size() == 1 && Runs().front().runner_name != ghost; }, minutes(3)));
}

// RUN-53, RUN-58
TEST_F(RunnersTest, ANodeThatDiesInTheJobEndsTheRun) {
  StartDaemon();
  std::int64_t lost = github_.Queue(minutes(20));
  ASSERT_TRUE(Await([this] { return Runs().size() == 1 && Runs().front().state == RunState::kJob; }));
  RunnerRun run = Runs().front();
  nodes_.Destroy(run.node.value);
  zk::DeleteOp remove{"/nodepool/leases/" + run.lease.value, -1};
  ASSERT_TRUE(zk_.tree().Delete(remove, 0));
  ASSERT_TRUE(Await([this] { return Runs().size() == 1 && Runs().front().state == RunState::kEnding; }));
  // GitHub thinks that it is busy, and other jobs run meanwhile.
  std::int64_t next = github_.Queue();
  ASSERT_TRUE(Await([&] { return github_.job(next).state == Job::State::kDone; }, minutes(2)));
  github_.Finish(github_.job(lost).runner, "failed");
  EXPECT_TRUE(Await([this] { return Runs().empty(); }, minutes(3)));
  EXPECT_EQ(github_.job(lost).times_started, 1);
}

// RUN-47: its job was cancelled, and its process does not care.
TEST_F(RunnersTest, AJobThatOutlivesItsCancellationLosesItsNode) {
  StartDaemon();
  std::int64_t job = github_.Queue(std::chrono::hours(2));
  ASSERT_TRUE(Await([this] { return Runs().size() == 1 && Runs().front().state == RunState::kJob; }));
  time_.Advance(seconds(2));  // its process has the job
  github_.Finish(github_.job(job).runner, "canceled");
  time_.Advance(minutes(4));
  EXPECT_EQ(nodes_.running(), 1);
  EXPECT_TRUE(Await([this] { return IsClean(); }, minutes(3)));
}

// RUN-55: the node stays, and the run ends.
TEST_F(RunnersTest, ANodeThatIsHeldEndsItsRun) {
  StartDaemon();
  std::int64_t job = github_.Queue(minutes(30));
  ASSERT_TRUE(Await([this] { return Runs().size() == 1 && Runs().front().state == RunState::kJob; }));
  RunnerRun run = Runs().front();
  ASSERT_TRUE(time_.Run(pool_.leases.HoldNode(run.lease, run.node, "for ada", 3600)));
  ASSERT_TRUE(Await([this] { return Children("/nodepool/leases").empty(); }));
  github_.Finish(github_.job(job).runner, "failed");
  EXPECT_TRUE(Await([this] { return Runs().empty() && github_.runners().empty(); }, minutes(3)));
  Expected<Node> node = ParseNode(Data("/nodepool/nodes/" + run.node.value), time_.loop().Now());
  ASSERT_TRUE(node);
  EXPECT_EQ(node->state, NodeState::kHold);
}

// The node of a failed job is held for a while, and one at a time.
TEST_F(RunnersTest, TheNodeOfAFailedJobIsKept) {
  config::RunnerSet set = Set();
  set.keep_failed = std::chrono::hours(1);
  services_ = {Service({set})};
  StartDaemon();
  github_.Queue();
  ASSERT_TRUE(AwaitAllDone());
  ASSERT_TRUE(Await([this] { return IsClean(); }, minutes(2))) << "it has succeeded";
  nodes_.result = "failed";
  for (int i = 0; i < 3; ++i) github_.Queue();
  ASSERT_TRUE(AwaitAllDone());
  ASSERT_TRUE(Await([this] { return Runs().empty() && node_count() == 1; }, minutes(2))) << WhatIsLeft();
  Expected<Node> node =
      ParseNode(Data("/nodepool/nodes/" + Children("/nodepool/nodes").front()), time_.loop().Now());
  ASSERT_TRUE(node);
  EXPECT_EQ(node->state, NodeState::kHold);
  EXPECT_THAT(node->comment.value_or(""), HasSubstr("of octo/app"));
  EXPECT_EQ(node->hold_expiration, 3600);
  time_.Advance(std::chrono::hours(1));
  github_.Queue();
  ASSERT_TRUE(AwaitAllDone());
  EXPECT_TRUE(Await([this] { return Runs().empty() && node_count() == 2; }, minutes(2)));
}

// RUN-61
TEST_F(RunnersTest, JobsGoOnWhileNoCallsAreMade) {
  Daemon& daemon = StartDaemon();
  github_.Queue(minutes(5));
  ASSERT_TRUE(Await([this] { return github_.CountJobs(Job::State::kRunning) == 1; }));
  daemon.check = [](const std::string&, testing::FakeConnection::Moment) {
    throw Error(Verdict::kRateLimited, "no calls until the reset");
  };
  ASSERT_TRUE(AwaitAllDone());
  EXPECT_EQ(MostStarts(), 1);
  EXPECT_TRUE(Await([this] { return node_count() == 0; }, minutes(2))) << "its node needs no call";
  daemon.check = nullptr;
  EXPECT_TRUE(Await([this] { return IsClean(); }, minutes(5)));
}

}  // namespace
}  // namespace nodepool::runners
