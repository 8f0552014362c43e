#include <boost/json/serialize.hpp>
#include <cstdlib>

#include "base/testing/test_environment.h"
#include "runners/runners_fixture_for_test.h"

namespace nodepool::runners {

// Sets of runners: their sessions, daemons and settings.

namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// RUN-14, RUN-23
TEST_F(RunnersTest, AStopClosesTheSessionAndKeepsTheSet) {
  Daemon& daemon = StartDaemon();
  ASSERT_TRUE(Await([this] { return SetRecord().state == "listening"; }));
  std::int64_t set = SetRecord().scale_set;
  EXPECT_TRUE(github_.HasSession(set));
  StopDaemon(daemon);
  EXPECT_FALSE(github_.HasSession(set));
  EXPECT_EQ(github_.set_count(), 1);
}

// RUN-14, RUN-72
TEST_F(RunnersTest, ASetThatIsRemovedDrainsAndIsDeleted) {
  Daemon& daemon = StartDaemon();
  github_.Queue(minutes(2));
  ASSERT_TRUE(Await([this] { return github_.CountJobs(Job::State::kRunning) == 1; }));
  daemon.runners->Reconfigure({Service({})});
  time_.Advance(minutes(1));
  EXPECT_EQ(github_.CountJobs(Job::State::kRunning), 1);
  ASSERT_TRUE(AwaitAllDone());
  EXPECT_TRUE(Await([this] { return github_.set_count() == 0 && IsClean(); }, minutes(2)));
  EXPECT_EQ(Data("/nodepool/runners/sets/octo/small"), "");
}

// RUN-13, RUN-71
TEST_F(RunnersTest, ASetThatExistsIsTakenOverAndItsLabelsFollow) {
  github_.MakeSet({.name = "small", .labels = {"other"}});
  Daemon& daemon = StartDaemon();
  ASSERT_TRUE(Await([this] { return SetRecord().state == "listening"; }));
  EXPECT_THAT(github_.LabelsOf(SetRecord().scale_set), ElementsAre("small"));
  EXPECT_FALSE(SetRecord().is_made);
  github_.Queue(minutes(2));
  ASSERT_TRUE(Await([this] { return github_.CountJobs(Job::State::kRunning) == 1; }));
  config::RunnerSet changed = Set("small", 7);
  changed.labels = {"small", "big"};
  daemon.runners->Reconfigure({Service({changed})});
  EXPECT_TRUE(Await([this] {
    return github_.LabelsOf(SetRecord().scale_set) == std::vector<std::string>{"small", "big"};
  }));
  EXPECT_TRUE(Await([this] { return SetRecord().max_runners == 7; }));
  daemon.runners->Reconfigure({Service({})});
  ASSERT_TRUE(Await([this] { return Data("/nodepool/runners/sets/octo/small").empty(); }));
  EXPECT_EQ(github_.set_count(), 1);  // not ours
}

// RUN-15
TEST_F(RunnersTest, DroppedLabelsAreAFault) {
  github_.drops_labels = true;
  config::RunnerSet set = Set();
  set.labels = {"small", "gpu"};
  services_ = {Service({set})};
  StartDaemon();
  ASSERT_TRUE(Await([this] { return SetRecord().state == "fault"; }));
  EXPECT_THAT(SetRecord().fault, HasSubstr("gpu"));
}

// RUN-21
TEST_F(RunnersTest, AForeignSessionIsWaitedFor) {
  std::int64_t set = github_.MakeSet({.name = "small", .labels = {"small"}}).id;
  github_.Occupy(set, "arc-listener");
  StartDaemon();
  time_.Advance(minutes(1));
  EXPECT_EQ(SetRecord().fault, "");
  time_.Advance(minutes(3));
  EXPECT_THAT(SetRecord().fault, HasSubstr("arc-listener"));
  EXPECT_TRUE(github_.HasSession(set));
  github_.Release(set);
  EXPECT_TRUE(
      Await([this] { return SetRecord().state == "listening" && SetRecord().fault.empty(); }, seconds(20)));
}

// RUN-26
TEST_F(RunnersTest, ASetThatVanishesIsMadeAgain) {
  StartDaemon();
  ASSERT_TRUE(Await([this] { return SetRecord().state == "listening"; }));
  std::int64_t first = SetRecord().scale_set;
  github_.DeleteSet(first);
  ASSERT_TRUE(Await([&] { return github_.set_count() == 1 && SetRecord().scale_set != first; }));
  github_.Queue();
  EXPECT_TRUE(AwaitAllDone());
}

// RUN-57
TEST_F(RunnersTest, TheSweepDeletesOnlyWhatIsOursAndLeft) {
  StartDaemon();
  ASSERT_TRUE(Await([this] { return SetRecord().state == "listening"; }));
  std::string prefix = "np" + Data("/nodepool/runners/identity") + "-small-";
  github_.AddRunner(prefix + "0123abcd", false);
  github_.AddRunner(prefix + "0123abce", true);
  github_.AddRunner(prefix + "other", false);
  github_.AddRunner("somebody", false);
  time_.Advance(minutes(4));
  EXPECT_TRUE(github_.HasRunnerNamed(prefix + "0123abcd"));
  EXPECT_TRUE(Await([&] { return !github_.HasRunnerNamed(prefix + "0123abcd"); }, minutes(20)));
  time_.Advance(minutes(30));
  EXPECT_EQ(github_.runners().size(), 3);
}

// RUN-59, RUN-22
TEST_F(RunnersTest, AnotherDaemonTakesOver) {
  Daemon& first = StartDaemon("np01");
  ASSERT_TRUE(Await([this] { return SetRecord().hostname == "np01" && SetRecord().state == "listening"; }));
  StartDaemon("np02");
  github_.Queue(minutes(1));
  ASSERT_TRUE(Await([this] { return github_.CountJobs(Job::State::kRunning) == 1; }));
  EXPECT_EQ(SetRecord().hostname, "np01");
  Die(first);
  SteadyTime death = time_.loop().SteadyNow();
  Bury(first);
  ASSERT_TRUE(Await([this] { return SetRecord().hostname == "np02" && SetRecord().state == "listening"; }));
  EXPECT_LE(time_.loop().SteadyNow() - death, seconds(15));
  github_.Queue();
  ASSERT_TRUE(AwaitAllDone());
  EXPECT_EQ(MostStarts(), 1);
  EXPECT_TRUE(Await([this] { return IsClean(); }));
}

// RUN-56: requests of the predecessor go on, also while the service cannot be reached.
TEST_F(RunnersTest, ASuccessorKeepsWhatWasBegun) {
  max_nodes_ = 0;
  Daemon& first = StartDaemon("np01");
  github_.Queue();
  ASSERT_TRUE(Await([this] { return Children("/nodepool/requests").size() == 1; }));
  std::string request = Children("/nodepool/requests").front();
  Die(first);
  Bury(first);
  Daemon& second = StartDaemon("np02");
  second.check = [](const std::string&, testing::FakeConnection::Moment) {
    throw Error(Verdict::kRetry, "no answer");
  };
  time_.Advance(minutes(3));
  EXPECT_THAT(Children("/nodepool/requests"), ElementsAre(request));
  second.check = nullptr;
  max_nodes_ = 10;
  EXPECT_TRUE(AwaitAllDone());
  EXPECT_EQ(nodes_made_, 1);
}

// RUN-60
TEST_F(RunnersTest, WithoutZooKeeperJobsGoOn) {
  Daemon& daemon = StartDaemon();
  github_.Queue(minutes(3));
  ASSERT_TRUE(Await([this] { return github_.CountJobs(Job::State::kRunning) == 1; }));
  zk_.Disconnect(*daemon.client);
  time_.Advance(minutes(1));
  EXPECT_EQ(github_.CountJobs(Job::State::kRunning), 1);
  zk_.Reconnect(*daemon.client);
  ASSERT_TRUE(AwaitAllDone());
  EXPECT_TRUE(Await([this] { return IsClean(); }));
  EXPECT_EQ(nodes_.started_count(), 1);
}

// RUN-27
TEST_F(RunnersTest, AcknowledgementsThatFailMakeNoJobRunTwice) {
  Daemon& daemon = StartDaemon();
  int lost = 0;
  daemon.check = [&lost](const std::string& call, testing::FakeConnection::Moment moment) {
    bool is_early = moment == testing::FakeConnection::Moment::kBefore;
    if (call == "Acknowledge" && is_early && lost++ < 3) throw Error(Verdict::kRetry, "no answer");
  };
  for (int i = 0; i < 3; ++i) github_.Queue();
  ASSERT_TRUE(AwaitAllDone());
  EXPECT_EQ(MostStarts(), 1);
  EXPECT_TRUE(Await([this] { return IsClean(); }, minutes(2)));
}

// RUN-25
TEST_F(RunnersTest, PollsThatFailAreRepeatedWithGrowingPauses) {
  Daemon& daemon = StartDaemon();
  ASSERT_TRUE(Await([this] { return SetRecord().state == "listening"; }));
  daemon.check = [](const std::string& call, testing::FakeConnection::Moment) {
    if (call == "NextBatch") throw Error(Verdict::kRetry, "cut off");
  };
  github_.Queue();
  int before = daemon.connection->calls["NextBatch"];
  time_.Advance(minutes(5));
  EXPECT_LT(daemon.connection->calls["NextBatch"] - before, 30);
  EXPECT_GT(daemon.connection->calls["NextBatch"] - before, 8);
  daemon.check = nullptr;
  EXPECT_TRUE(AwaitAllDone());
}

// RUN-64: of calls besides polls; a connection of the service costs two REST calls an hour.
TEST_F(RunnersTest, ASetAtRestCostsHardlyAnyCalls) {
  Daemon& daemon = StartDaemon();
  ASSERT_TRUE(Await([this] { return SetRecord().state == "listening"; }));
  daemon.connection->calls.clear();
  time_.Advance(std::chrono::hours(1));
  EXPECT_LE(daemon.connection->calls["NextBatch"], 75);
  EXPECT_LE(daemon.connection->calls["ListRunners"], 7);
  daemon.connection->calls.erase("NextBatch");
  daemon.connection->calls.erase("ListRunners");
  for (const auto& [call, count] : daemon.connection->calls) EXPECT_EQ(count, 0) << call;
}

// What a daemon leaves when it dies at any moment, and that another one ends it (runners.md 11).

using std::chrono::minutes;
using std::chrono::seconds;
using Fault = nodepool::testing::FaultyZk::Fault;
using Moment = testing::FakeConnection::Moment;

constexpr int kMoments = 34;

class AnyMomentTest : public RunnersTest, public ::testing::WithParamInterface<std::tuple<int, bool, bool>> {
 protected:
  // Every write to the tree and every call of the service that changes something counts.
  void DieAtMoment(Daemon& daemon, int moment, bool is_carried_out) {
    daemon.faulty->FailWhen([&daemon, moment, is_carried_out, this](const auto& call) {
      if (daemon.is_dead) return Fault::kBefore;
      if (!call.is_write || moments_++ != moment) return Fault::kNone;
      daemon.is_dead = true;
      return is_carried_out ? Fault::kAfter : Fault::kBefore;
    });
    daemon.faulty->SetError(Error(Verdict::kLostSession, "the daemon is dead"));
    daemon.check = [&daemon, moment, is_carried_out, this](const std::string& call, Moment when) {
      bool changes =
          call != "NextBatch" && call != "FindSet" && call != "FindRunner" && call != "ListRunners";
      bool is_here = (when == Moment::kAfter) == is_carried_out;
      if (!changes || !is_here || moments_++ != moment) return;
      daemon.is_dead = true;
      throw Error(Verdict::kRetry, "the daemon is dead");
    };
  }

  int moments_ = 0;
};

// RUN-56
TEST_P(AnyMomentTest, TheJobRunsOnceAndNothingIsLeft) {
  auto [moment, is_carried_out, is_direct] = GetParam();
  github_.is_direct = is_direct;
  Daemon& first = StartDaemon("np01");
  ASSERT_TRUE(Await([this] { return SetRecord().state == "listening"; }));
  DieAtMoment(first, moment, is_carried_out);
  std::int64_t job = github_.Queue();
  bool is_over = Await([&] { return first.is_dead || (github_.AllDone() && IsClean()); }, minutes(5));
  ASSERT_TRUE(is_over);
  bool has_died = first.is_dead;
  if (has_died) {
    Bury(first);
    StartDaemon("np02");
  }
  ASSERT_TRUE(AwaitAllDone(minutes(5)));
  EXPECT_EQ(github_.job(job).times_started, 1);
  EXPECT_EQ(github_.job(job).result, "succeeded");
  EXPECT_LE(nodes_.most_started(), 1);
  EXPECT_TRUE(Await([this] { return IsClean(); }, minutes(25))) << WhatIsLeft();
  EXPECT_LE(nodes_made_, 2);
  bool is_last = moment == kMoments - 1;
  EXPECT_FALSE(is_last && has_died) << "the life of a job has more steps: add moments";
}

INSTANTIATE_TEST_SUITE_P(Steps, AnyMomentTest,
                         ::testing::Combine(::testing::Range(0, kMoments), ::testing::Bool(),
                                            ::testing::Bool()));

// How many jobs a storm has: NODEPOOL_TEST_RUNNER_JOBS=10000 is what the specification says.
int StormJobs() {
  const char* jobs = std::getenv("NODEPOOL_TEST_RUNNER_JOBS");
  return jobs == nullptr ? nodepool::testing::Often(300, 60) : std::atoi(jobs);
}

// RUN-45, RUN-65: faults of all kinds, in the service, in ZooKeeper and on nodes; daemons die, too.
TEST_F(RunnersTest, AStormLeavesNothing) {
  services_ = {Service({Set("small", 20)})};
  nodes_.refuses = [this] { return random_.Below(50) == 0; };
  nodes_.is_silent = [this] { return random_.Below(50) == 0; };
  nodes_.dies = [this] { return random_.Below(50) == 0; };
  auto unreliable = [this](const std::string&, Moment) {
    if (random_.Below(40) == 0) throw Error(Verdict::kRetry, "injected fault");
  };
  auto begin = [&](const std::string& name) {
    Daemon& daemon = StartDaemon(name);
    daemon.check = unreliable;
    daemon.faulty->FailRandomly(0.01, random_);
  };
  begin("np01");
  begin("np02");
  const int jobs = StormJobs();
  int queued = 0;
  for (int round = 0; queued < jobs; ++round) {
    for (int i = 0; i < 20 && queued < jobs; ++i, ++queued)
      github_.Queue(seconds(1 + static_cast<int>(random_.Below(60))),
                    random_.Below(2) ? "octo/app" : "octo/lib");
    time_.Advance(seconds(30 + static_cast<int>(random_.Below(60))));
    if (round % 5 == 0) nodes_.BreakSessions();
    if (round % 8 == 7) {
      Daemon& victim = *daemons_[random_.Below(2)];
      std::string name = victim.name;
      Die(victim);
      Bury(victim);
      begin(name);
    }
  }
  for (const auto& daemon : daemons_) {
    daemon->check = nullptr;
    daemon->faulty->FailNever();
  }
  nodes_.refuses = nodes_.is_silent = nodes_.dies = [] { return false; };
  auto lost = [this] {  // runners that died with their job: GitHub notices in the end
    for (const auto& [id, runner] : std::map(github_.runners())) {
      if (runner.job != 0 && nodes_.running() == 0) github_.Finish(id, "failed");
    }
    return github_.AllDone();
  };
  ASSERT_TRUE(Await(lost, std::chrono::hours(3)));
  EXPECT_TRUE(Await([this] { return IsClean(); }, std::chrono::hours(2)));
  EXPECT_EQ(MostStarts(), 1);
  EXPECT_EQ(nodes_.most_started(), 1);
  EXPECT_LE(most_nodes_, 25);
}

// What is seen of jobs: beside their nodes, in records, in metrics.

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

// RUN-74
TEST_F(RunnersTest, TheNodeNamesItsJob) {
  StartDaemon();
  github_.Queue(minutes(2));
  ASSERT_TRUE(Await([this] { return !Runs().empty() && Runs().front().state == RunState::kJob; }));
  std::string path = "/nodepool/nodes/" + Runs().front().node.value;
  ASSERT_TRUE(Await([&] { return Data(path).find("\"runner\"") != std::string::npos; }, seconds(60)));
  Expected<Node> node = ParseNode(Data(path), time_.loop().Now());
  ASSERT_TRUE(node);
  boost::json::value data = node->user_data.value();
  EXPECT_EQ(data.at("client"), "runners:octo");
  EXPECT_EQ(data.at("runner").at("repository"), "octo/app");
  EXPECT_EQ(data.at("runner").at("workflow"), ".github/workflows/ci.yaml");
  EXPECT_EQ(data.at("runner").at("run_url"), "https://github.com/octo/app/actions/runs/1");
  ASSERT_TRUE(AwaitAllDone());
  EXPECT_TRUE(Await([this] { return IsClean(); }, minutes(1)));
}

// RUN-73
TEST_F(RunnersTest, JobsThatWaitAreNamedWithTheirReason) {
  services_ = {Service({Set("small", 1)})};
  StartDaemon();
  for (int i = 0; i < 3; ++i) github_.Queue(minutes(2));
  ASSERT_TRUE(Await([this] { return github_.CountJobs(Job::State::kRunning) == 1; }));
  ASSERT_TRUE(Await([this] { return SetRecord().jobs.size() == 2; }, minutes(1)))
      << Data("/nodepool/runners/sets/octo/small");
  EXPECT_EQ(SetRecord().jobs.front().repository, "octo/app");
  EXPECT_EQ(SetRecord().why, "max-runners of the set, 1, is reached");
  ASSERT_TRUE(AwaitAllDone());
  EXPECT_TRUE(Await([this] { return SetRecord().jobs.empty() && SetRecord().why.empty(); }, minutes(2)));
}

// RUN-37, RUN-73
TEST_F(RunnersTest, JobsThatAreNotAcquiredYetAreNamed) {
  config::RunnerSet set = Set();
  set.max_per_repo = 1;
  services_ = {Service({set})};
  StartDaemon();
  for (int i = 0; i < 2; ++i) github_.Queue(minutes(2));
  ASSERT_TRUE(Await([this] { return SetRecord().deferred.size() == 1; }));
  EXPECT_EQ(SetRecord().deferred.front().repository, "octo/app");
  EXPECT_TRUE(AwaitAllDone());
}

// RUN-37: where the service assigns jobs at once.
TEST_F(RunnersTest, ALimitThatDoesNotHoldIsWarnedOf) {
  config::RunnerSet set = Set();
  set.max_per_repo = 1;
  services_ = {Service({set})};
  StartDaemon();
  github_.Queue();
  ASSERT_TRUE(AwaitAllDone());
  EXPECT_THAT(SetRecord().warnings, ::testing::IsEmpty());
  github_.is_direct = true;
  github_.Queue();
  ASSERT_TRUE(AwaitAllDone());
  ASSERT_TRUE(Await([this] { return !SetRecord().warnings.empty(); }, minutes(1)));
  EXPECT_THAT(SetRecord().warnings.front(), HasSubstr("max-per-repo does not hold"));
}

// RUN-44: the days count from the first newer version on, and end with a new image.
TEST_F(RunnersTest, AnOldRunnerIsWarnedOf) {
  github_.newest_version = "2.341.0";
  StartDaemon();
  github_.Queue();
  ASSERT_TRUE(AwaitAllDone());
  ASSERT_TRUE(Await([this] { return !SetRecord().warnings.empty(); }, minutes(1)));
  EXPECT_THAT(SetRecord().warnings.front(), HasSubstr("is 2.340.0, the newest is 2.341.0"));
  github_.newest_version = "2.342.0";
  time_.Advance(std::chrono::hours(25));
  EXPECT_THAT(SetRecord().warnings.front(), HasSubstr("the newest is 2.342.0"));
  EXPECT_THAT(SetRecord().warnings.front(), HasSubstr("in 29 days"));
  EXPECT_THAT(prometheus_.Text(),
              HasSubstr("nodepool_runners_version_age_days{service=\"octo\",set=\"small\"} 1"));
  nodes_.version = "2.342.0";
  github_.Queue();
  ASSERT_TRUE(AwaitAllDone());
  EXPECT_TRUE(Await([this] { return SetRecord().warnings.empty(); }, minutes(1)));
}

// RUN-53, RUN-73
TEST_F(RunnersTest, ALostJobIsNamedForADay) {
  StartDaemon();
  std::int64_t job = github_.Queue(minutes(20));
  ASSERT_TRUE(Await([this] { return Runs().size() == 1 && Runs().front().state == RunState::kJob; }));
  RunnerRun run = Runs().front();
  nodes_.Destroy(run.node.value);
  ASSERT_TRUE(zk_.tree().Delete({"/nodepool/leases/" + run.lease.value, -1}, 0));
  ASSERT_TRUE(Await([this] { return SetRecord().lost.size() == 1; }));
  EXPECT_EQ(SetRecord().lost.front().job.repository, "octo/app");
  EXPECT_EQ(SetRecord().lost.front().node, run.node);
  EXPECT_FALSE(SetRecord().lost.front().reason.empty());
  github_.Finish(github_.job(job).runner, "failed");
  ASSERT_TRUE(Await([this] { return Runs().empty(); }, minutes(3)));
  EXPECT_EQ(SetRecord().lost.size(), 1);
  time_.Advance(std::chrono::hours(25));
  EXPECT_TRUE(SetRecord().lost.empty());
}

// RUN-73: from the assignment to the first step.
TEST_F(RunnersTest, TheTimeLineIsMeasured) {
  StartDaemon();
  github_.Queue(seconds(30));
  ASSERT_TRUE(Await([this] { return !Runs().empty() && Runs().front().state == RunState::kJob; }));
  ASSERT_TRUE(Await([this] { return Runs().front().job.assigned_time.has_value(); }));
  RunnerRun run = Runs().front();
  EXPECT_LE(*run.created_time, *run.node_time);
  EXPECT_LE(*run.node_time, *run.online_time);
  EXPECT_LE(*run.online_time, *run.job_time);
  EXPECT_LE(*run.job.queued_time, *run.job.assigned_time);
  ASSERT_TRUE(AwaitAllDone());
  std::string text = prometheus_.Text();
  for (const char* name : {"first_step", "start", "node", "wait"})
    EXPECT_THAT(text, HasSubstr(fmt::format(
                          "nodepool_runner_{}_seconds_count{{service=\"octo\",set=\"small\"}} 1", name)));
}

}  // namespace

}  // namespace nodepool::runners
