// Sets of runners: their sessions, daemons and settings.

#include "runners/runners_fixture_for_test.h"

namespace nodepool::runners {
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

}  // namespace
}  // namespace nodepool::runners
