#include "base/testing/test_environment.h"
#include "runners/runners_fixture_for_test.h"

namespace nodepool::runners {

// Jobs, and how many runners there are for them.

namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// RUN-1, RUN-13
TEST_F(RunnersTest, AJobRunsAndItsNodeIsGivenBack) {
  StartDaemon();
  github_.Queue();
  ASSERT_TRUE(AwaitAllDone());
  EXPECT_TRUE(Await([this] { return IsClean(); }, minutes(1)));
  EXPECT_EQ(nodes_made_, 1);
  EXPECT_EQ(github_.set_count(), 1);
}

// RUN-4
TEST_F(RunnersTest, BothFlows) {
  StartDaemon();
  for (bool is_direct : {false, true}) {
    github_.is_direct = is_direct;
    for (int i = 0; i < 6; ++i) github_.Queue();
    ASSERT_TRUE(AwaitAllDone()) << is_direct;
    EXPECT_TRUE(Await([this] { return IsClean(); }, minutes(2)));
  }
  EXPECT_EQ(MostStarts(), 1);
}

// RUN-3, RUN-29
TEST_F(RunnersTest, ManyJobsWithinTheLimit) {
  services_ = {Service({Set("small", 40)})};
  StartDaemon();
  for (int i = 0; i < nodepool::testing::Often(500, 100); ++i) github_.Queue();
  ASSERT_TRUE(AwaitAllDone());
  EXPECT_LE(most_nodes_, 41);  // one that is given back may be there beside its successor
  EXPECT_EQ(MostStarts(), 1);
  EXPECT_EQ(nodes_.most_started(), 1);
  EXPECT_TRUE(Await([this] { return IsClean(); }, minutes(5)));
}

// RUN-31
TEST_F(RunnersTest, JobsOfMessagesGetRunnersWithoutFigures) {
  github_.has_figures = false;
  StartDaemon();
  github_.Queue();
  EXPECT_TRUE(AwaitAllDone());
}

// RUN-32
TEST_F(RunnersTest, ACancelledJobsRunnerTakesTheNextOne) {
  services_ = {Service({Set("small", 1)})};
  StartDaemon();
  std::int64_t first = github_.Queue();
  std::int64_t second = github_.Queue();
  ASSERT_TRUE(Await([this] { return nodes_.started_count() == 1; }));
  github_.Cancel(first);
  EXPECT_TRUE(Await([&] { return github_.job(second).state == Job::State::kDone; }, minutes(1)));
  EXPECT_EQ(nodes_made_, 1);
}

// RUN-33
TEST_F(RunnersTest, AJobThatIsCancelledBeforeItsNodeCostsNone) {
  max_nodes_ = 0;
  StartDaemon();
  std::int64_t job = github_.Queue();
  ASSERT_TRUE(Await([this] { return Children("/nodepool/requests").size() == 1; }));
  github_.Cancel(job);
  EXPECT_TRUE(Await([this] { return IsClean(); }, seconds(10)));
  EXPECT_EQ(nodes_made_, 0);
}

// RUN-34
TEST_F(RunnersTest, PhantomsCostTheirNumberOfNodesOnce) {
  StartDaemon();
  github_.phantoms = 2;
  github_.Queue();  // so that there are figures
  ASSERT_TRUE(AwaitAllDone());
  ASSERT_TRUE(Await([this] { return SetRecord().phantoms == 2 && IsClean(); }, minutes(20)));
  std::size_t made = nodes_made_;
  EXPECT_LE(made, 3);
  time_.Advance(minutes(30));
  EXPECT_EQ(nodes_made_, made);
  github_.phantoms = 0;
  github_.Queue();
  EXPECT_TRUE(AwaitAllDone());
}

// RUN-35
TEST_F(RunnersTest, SurplusRunnersAreTakenBackAfterAMinute) {
  StartDaemon();
  std::vector<std::int64_t> jobs = {github_.Queue(), github_.Queue(), github_.Queue()};
  ASSERT_TRUE(Await([this] { return nodes_.started_count() == 3; }));
  for (std::int64_t job : jobs) github_.Cancel(job);
  time_.Advance(seconds(30));
  EXPECT_EQ(node_count(), 3);
  EXPECT_TRUE(Await([this] { return IsClean(); }, minutes(2)));
}

// RUN-36
TEST_F(RunnersTest, IdleRunnersWait) {
  config::RunnerSet set = Set();
  set.idle = 2;
  services_ = {Service({set})};
  StartDaemon();
  auto idle = [this] {
    return std::ranges::count_if(Runs(), [](const RunnerRun& run) { return run.state == RunState::kOnline; });
  };
  ASSERT_TRUE(Await([&] { return idle() == 2; }));
  time_.Advance(minutes(20));
  EXPECT_EQ(idle(), 2);
  std::int64_t job = github_.Queue();
  EXPECT_TRUE(Await([&] { return github_.job(job).state == Job::State::kRunning; }, seconds(2)));
  EXPECT_TRUE(Await([&] { return github_.AllDone() && idle() == 2; }));
  std::string ended = Runs().front().runner_name;
  github_.RemoveRegistration(ended);
  EXPECT_TRUE(Await([&] {
    return idle() == 2 &&
           std::ranges::none_of(Runs(), [&](const RunnerRun& run) { return run.runner_name == ended; });
  }));
}

// RUN-37
TEST_F(RunnersTest, TheServicesLimitHoldsForAllItsSets) {
  config::RunnerService service = Service({Set("small", 4), Set("large", 4)});
  service.max_runners = 3;
  services_ = {service};
  StartDaemon();
  for (const char* set : {"small", "large"}) {
    for (int i = 0; i < 5; ++i) github_.Queue(seconds(20), "octo/app", set);
  }
  ASSERT_TRUE(AwaitAllDone());
  EXPECT_LE(most_nodes_, 5);  // two that are given back may be there beside their successors
}

// RUN-37
TEST_F(RunnersTest, ARepositorysLimit) {
  config::RunnerSet set = Set("small", 10);
  set.max_per_repo = 2;
  services_ = {Service({set})};
  StartDaemon();
  for (int i = 0; i < 6; ++i) github_.Queue(seconds(20), "octo/app");
  std::int64_t other = github_.Queue(seconds(20), "octo/lib");
  std::size_t most = 0;
  bool is_done = Await([&] {
    std::size_t count = 0;
    for (const auto& [id, job] : github_.jobs()) {
      bool is_running = job.repository == "octo/app" && job.state == Job::State::kRunning;
      if (is_running) ++count;
    }
    most = std::max(most, count);
    return github_.AllDone();
  });
  EXPECT_TRUE(is_done);
  EXPECT_EQ(most, 2);
  EXPECT_EQ(github_.job(other).times_started, 1);
}

// RUN-38
TEST_F(RunnersTest, PriorityAndTenantAreTheRequests) {
  max_nodes_ = 0;
  config::RunnerSet set = Set();
  set.priority = 7;
  set.tenant = "octo";
  services_ = {Service({set})};
  StartDaemon();
  github_.Queue();
  ASSERT_TRUE(Await([this] { return Children("/nodepool/requests").size() == 1; }));
  std::string id = Children("/nodepool/requests").front();
  EXPECT_TRUE(id.starts_with("007-")) << id;
  Expected<NodeRequest> request = ParseNodeRequest(Data("/nodepool/requests/" + id), time_.loop().Now());
  ASSERT_TRUE(request);
  EXPECT_EQ(request->tenant_name, "octo");
  EXPECT_EQ(request->requestor, "runners:octo/small");
}

// RUN-48
TEST_F(RunnersTest, TheResultIsTheServices) {
  nodes_.dies = [] { return true; };  // its process ends in the job, with a status that says nothing
  nodepool::log::Capture log;
  StartDaemon();
  std::int64_t job = github_.Queue(minutes(5));
  ASSERT_TRUE(Await([this] { return node_count() == 0 && nodes_made_ == 1; }));
  EXPECT_EQ(log.Count("succeeded"), 0);
  github_.Finish(github_.job(job).runner, "failed");
  EXPECT_TRUE(Await([&] { return log.Count("has ended: failed") == 1; }));
}

// RUN-95
TEST_F(RunnersTest, JobsOfPublicRepositoriesAreLeftAlone) {
  github_.public_repositories = {"octo/open"};
  Daemon& daemon = StartDaemon();
  std::int64_t open = github_.Queue(seconds(5), "octo/open");
  std::int64_t closed = github_.Queue(seconds(5), "octo/app");
  ASSERT_TRUE(Await([&] { return github_.job(closed).state == Job::State::kDone; }));
  time_.Advance(minutes(10));
  EXPECT_EQ(github_.job(open).state, Job::State::kAnnounced);
  EXPECT_EQ(nodes_made_, 1);
  config::RunnerService permitted = Service({Set()});
  permitted.allows_public = true;
  daemon.runners->Reconfigure({permitted});
  std::int64_t next = github_.Queue(seconds(5), "octo/open");
  EXPECT_TRUE(Await([&] { return github_.job(next).state == Job::State::kDone; }));
}

// RUN-42, RUN-30
TEST_F(RunnersTest, WithoutCapacityRequestsWait) {
  max_nodes_ = 1;
  StartDaemon();
  ASSERT_TRUE(Await([this] { return SetRecord().state == "listening"; }));
  for (int i = 0; i < 3; ++i) github_.Queue(minutes(3));
  ASSERT_TRUE(Await([this] { return github_.CapacityOf(SetRecord().scale_set) == 1; }, minutes(3)));
  max_nodes_ = 10;
  EXPECT_TRUE(AwaitAllDone());
}

// Runs: a runner on its node, and what goes wrong with it.

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
