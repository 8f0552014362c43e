// Launches while their provider is away (drivers.md 5.4).
#include <gmock/gmock.h>

#include "async/task_group.h"
#include "driver/cloud/cloud_provider_fixture_for_test.h"

namespace nodepool::driver::cloud {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;

class LaunchOutageTest : public ProviderTest {
 protected:
  void BeginOutage(Verdict verdict = Verdict::kRetry) { cloud->outage = Error(verdict, "502 Bad Gateway"); }

  // The cloud is away for a while, beginning after a launch was begun.
  void LaunchThroughOutage(Duration begin, Duration duration, Verdict verdict = Verdict::kRetry) {
    TaskGroup group(time.loop(), log::Logger("test.launch"));
    group.Spawn("launch", LaunchNode());
    time.Advance(begin);
    BeginOutage(verdict);
    time.Advance(duration);
    EXPECT_EQ(group.size(), 1u) << "it waits";
    cloud->outage.reset();
    time.Advance(minutes(2));
    EXPECT_EQ(group.size(), 0u);
  }
  ScriptedAdapter::Creation FailsOnce(Verdict verdict) {
    ScriptedAdapter::Creation broken;
    broken.fault_before_id = Error(verdict, "500 Internal Server Error");
    return broken;
  }
};

TEST_F(LaunchOutageTest, CostsNoAttemptWheneverItBeginsAndHoweverLongItIs) {  // BB-40
  config->launch_retries = 1;
  StartProvider();
  for (Verdict verdict : {Verdict::kRetry, Verdict::kRateLimited}) {
    // Before the creation, before it is answered, while the machine boots.
    for (Duration begin : {milliseconds(0), milliseconds(500), milliseconds(1500)}) {
      for (Duration duration : {seconds(3), seconds(20), seconds(60)}) {
        outcomes.clear();
        cloud->machines.clear();
        LaunchThroughOutage(begin, duration, verdict);
        EXPECT_THAT(Results(), ElementsAre("ready"));
        EXPECT_EQ(Stored().state, NodeState::kReady);
        ASSERT_EQ(cloud->machines.size(), 1u) << "the machine of an interrupted creation was deleted";
        EXPECT_EQ(Stored().external_id, boost::json::value(cloud->machines.begin()->first));
      }
    }
  }
}

TEST_F(LaunchOutageTest, WhileTheFailedMachineIsDeletedItCostsNoAttempt) {
  config->launch_retries = 2;
  StartProvider();
  ScriptedAdapter::Creation broken;
  broken.fault_after_id = Error(Verdict::kFail, "no luck");
  cloud->creations = {broken, ScriptedAdapter::Creation()};
  LaunchThroughOutage(milliseconds(2100), seconds(60));
  EXPECT_THAT(Results(), ElementsAre("error.unknown", "ready"));
  EXPECT_THAT(cloud->deleted, ElementsAre("machine-1"));
}

TEST_F(LaunchOutageTest, IsReportedAtOnceAndUntilItEnds) {
  StartProvider();
  fault_reports.clear();
  TaskGroup group(time.loop(), log::Logger("test.launch"));
  BeginOutage();
  group.Spawn("launch", LaunchNode());
  time.Advance(milliseconds(1));
  ASSERT_FALSE(fault_reports.empty());
  ASSERT_TRUE(fault_reports.back());
  EXPECT_EQ(fault_reports.back()->cause, "502 Bad Gateway");
  EXPECT_TRUE(fault_reports.back()->is_outage);
  time.Advance(seconds(10));
  EXPECT_TRUE(fault_reports.back() && fault_reports.back()->is_outage);
  cloud->outage.reset();
  time.Advance(minutes(1));
  EXPECT_FALSE(fault_reports.back());
  EXPECT_EQ(group.size(), 0u);
}

TEST_F(LaunchOutageTest, OneProbeIsEnoughForAHundredLaunches) {
  StartProvider();
  BeginOutage();
  TaskGroup group(time.loop(), log::Logger("test.launch"));
  const int asked = cloud->quota_asked;
  for (int i = 0; i < 100; ++i) group.Spawn("launch", LaunchNode());
  time.Advance(seconds(60));
  EXPECT_EQ(cloud->requested.size(), 100u) << "each finds out once";
  EXPECT_LE(cloud->quota_asked - asked, 12);
  cloud->outage.reset();
  time.Advance(minutes(2));
  EXPECT_EQ(group.size(), 0u);
  EXPECT_EQ(cloud->requested.size(), 200u);
  EXPECT_EQ(cloud->machines.size(), 100u);
  std::vector<std::string> all_ready(100, "ready");
  EXPECT_EQ(Results(), all_ready);
}

// A launch that nobody can carry out must neither wait for ever nor be tried at full speed.
TEST_F(LaunchOutageTest, WhatOnlyThisLaunchSeesIsItsOwnFaultInTheEnd) {
  StartProvider();
  cloud->creations = {FailsOnce(Verdict::kRetry)};
  SteadyTime begin = time.loop().SteadyNow();
  EXPECT_EQ(LaunchFails(), Verdict::kRetry);
  Duration taken = time.loop().SteadyNow() - begin;
  EXPECT_THAT(Results(), ElementsAre("error.unknown", "error.unknown", "error.unknown"));
  EXPECT_EQ(cloud->requested.size(), 11u) << "eight that cost nothing, and the attempts";
  EXPECT_GE(taken, minutes(1));
  EXPECT_LE(taken, minutes(6));
  EXPECT_FALSE(fault_reports.back()) << "the provider can be used";
}

TEST_F(LaunchOutageTest, CreationsAloneMayFailForAMinute) {
  StartProvider();
  cloud->creations = {FailsOnce(Verdict::kRetry)};
  TaskGroup group(time.loop(), log::Logger("test.launch"));
  group.Spawn("launch", LaunchNode());
  time.Advance(seconds(60));
  cloud->creations = {ScriptedAdapter::Creation()};
  time.Advance(minutes(2));
  EXPECT_EQ(group.size(), 0u);
  EXPECT_THAT(Results(), ElementsAre("ready"));
}

TEST_F(LaunchOutageTest, ALaunchThatBeginsMeanwhileWaitsWithoutACall) {
  StartProvider();
  BeginOutage();
  TaskGroup group(time.loop(), log::Logger("test.launch"));
  group.Spawn("first", LaunchNode());
  time.Advance(seconds(5));
  group.Spawn("second", LaunchNode());
  time.Advance(seconds(5));
  EXPECT_EQ(cloud->requested.size(), 1u);
  cloud->outage.reset();
  time.Advance(minutes(1));
  EXPECT_THAT(Results(), ElementsAre("ready", "ready"));
}

TEST_F(LaunchOutageTest, AfterLaunchTimeoutItFails) {
  config->launch_timeout = minutes(5);
  StartProvider();
  BeginOutage();
  SteadyTime begin = time.loop().SteadyNow();
  EXPECT_EQ(LaunchFails(), Verdict::kTimedOut);
  EXPECT_EQ(time.loop().SteadyNow() - begin, minutes(5));
  EXPECT_THAT(Results(), ElementsAre("error.servercreatetimeout"));
  cloud->outage.reset();
}

// The successor of a provider may have other credentials.
TEST_F(LaunchOutageTest, AProviderThatIsStoppedDoesNotKeepItsLaunches) {
  StartProvider();
  BeginOutage();
  Verdict verdict = Verdict::kFail;
  auto note_end = [](Task<> launch, Verdict& verdict) -> Task<> {
    Outcome<> launched = co_await Attempt(std::move(launch));
    if (!launched) verdict = launched.error().verdict();
  };
  TaskGroup group(time.loop(), log::Logger("test.launch"));
  group.Spawn("launch", note_end(LaunchNode(), verdict));
  time.Advance(seconds(5));
  EXPECT_EQ(group.size(), 1u);
  time.Run(provider->Stop());
  provider.reset();
  EXPECT_EQ(group.size(), 0u);
  EXPECT_EQ(verdict, Verdict::kQuota) << "the request goes on without this node";
}

}  // namespace
}  // namespace nodepool::driver::cloud
