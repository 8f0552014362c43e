#include "runners/set/set_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nodepool::runners {

namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

const WallTime kHealthNow = FromSeconds(1'700'000'000);

// RUN-41
TEST(SetHealthTest, ThreeFailuresInARowHoldBackStarts) {
  SetHealth health;
  health.DidNotStart("no ssh", kHealthNow);
  health.DidNotStart("no ssh", kHealthNow);
  EXPECT_FALSE(health.HeldBackUntil(kHealthNow));
  EXPECT_EQ(health.Fault(kHealthNow).text, "");
  health.DidNotStart("no ssh", kHealthNow);
  EXPECT_EQ(health.HeldBackUntil(kHealthNow), kHealthNow + minutes(1));
  EXPECT_THAT(health.Fault(kHealthNow).text, HasSubstr("do not start on their nodes: no ssh"));
  EXPECT_THAT(health.Fault(kHealthNow).remedy, HasSubstr("nodepool exec"));
  EXPECT_FALSE(health.HeldBackUntil(kHealthNow + minutes(1)));
  for (int i = 0; i < 20; ++i) health.DidNotStart("no ssh", kHealthNow);
  EXPECT_EQ(health.HeldBackUntil(kHealthNow), kHealthNow + minutes(10));
  health.Started();
  EXPECT_FALSE(health.HeldBackUntil(kHealthNow));
  EXPECT_EQ(health.Fault(kHealthNow).text, "");
}

// RUN-42
TEST(SetHealthTest, RequestsThatFail) {
  SetHealth health;
  health.NoNode("no node of label x", kHealthNow);
  EXPECT_TRUE(health.LacksNodes(kHealthNow + seconds(60)));
  EXPECT_FALSE(health.LacksNodes(kHealthNow + seconds(61)));
  EXPECT_EQ(health.Fault(kHealthNow).text, "they get no nodes: no node of label x");
  EXPECT_EQ(health.Fault(kHealthNow + minutes(2)).text, "");
}

// RUN-44
TEST(SetHealthTest, ARefusedVersion) {
  SetHealth health;
  health.Deprecated("2.300.0", kHealthNow);
  EXPECT_EQ(health.HeldBackUntil(kHealthNow), kHealthNow + minutes(10));
  EXPECT_THAT(health.Fault(kHealthNow).text, HasSubstr("2.300.0"));
}

TEST(SetHealthTest, FaultsOfTheServiceComeFirst) {
  SetHealth health;
  health.NoNode("no node", kHealthNow);
  health.ServiceFault({"status 401", "correct the token"});
  EXPECT_EQ(health.Fault(kHealthNow).text, "status 401");
  health.ServiceFault({});
  EXPECT_EQ(health.Fault(kHealthNow).text, "they get no nodes: no node");
}

const WallTime kNow = FromSeconds(1'700'000'000);

RunnerJob JobOf(std::int64_t request, std::string repository = "octo/app") {
  return {.request = request, .repository = std::move(repository)};
}

// RUN-27
TEST(KnownJobsTest, AMessageThatComesAgainChangesNothing) {
  KnownJobs jobs;
  EXPECT_TRUE(jobs.Add(JobOf(1), kNow));
  EXPECT_FALSE(jobs.Add(JobOf(1), kNow));
  EXPECT_EQ(jobs.count(), 1);
  jobs.End(1, kNow);
  EXPECT_FALSE(jobs.Add(JobOf(1), kNow));
  EXPECT_EQ(jobs.count(), 0);
}

// RUN-31
TEST(KnownJobsTest, OneFigureOfNothingIsNotBelieved) {
  KnownJobs jobs;
  jobs.Add(JobOf(1), kNow);
  jobs.Compare({}, kNow);
  EXPECT_EQ(jobs.count(), 1);
  jobs.Add(JobOf(2), kNow);
  jobs.Compare({}, kNow);
  EXPECT_EQ(jobs.count(), 2);
  jobs.Compare({}, kNow);
  EXPECT_EQ(jobs.count(), 0);
}

TEST(KnownJobsTest, OldJobsAreLeftToTheFigures) {
  KnownJobs jobs;
  jobs.Add(JobOf(1), kNow);
  jobs.Compare({.assigned = 1}, kNow + minutes(10));
  EXPECT_EQ(jobs.count(), 1);
  jobs.Compare({.assigned = 1}, kNow + minutes(11));
  EXPECT_EQ(jobs.count(), 0);
}

// RUN-37
TEST(KnownJobsTest, DeferredJobsComeLater) {
  KnownJobs jobs;
  jobs.Defer(JobOf(7));
  jobs.Defer(JobOf(7));
  jobs.Defer(JobOf(8, "octo/lib"));
  EXPECT_EQ(jobs.deferred(), (std::vector{JobOf(7), JobOf(8, "octo/lib")}));
  auto taken = jobs.TakeDeferred([](const auto& job) { return job.repository == "octo/lib"; });
  ASSERT_EQ(taken.size(), 1);
  EXPECT_EQ(taken[0].request, 8);
  jobs.End(7, kNow);
  EXPECT_TRUE(jobs.deferred().empty());
  for (int i = 0; i < 1000; ++i) jobs.Defer(JobOf(i));
  EXPECT_EQ(jobs.deferred().size(), 200);
  EXPECT_TRUE(jobs.is_full());
}

TEST(KnownJobsTest, TheOldestAreShown) {
  KnownJobs jobs;
  for (int i = 9; i > 0; --i) jobs.Add(JobOf(i), kNow);
  EXPECT_EQ(jobs.First(2), (std::vector{JobOf(1), JobOf(2)}));
  EXPECT_EQ(jobs.First(20).size(), 9);
}

TEST(KnownJobsTest, TheirNumberIsBounded) {
  KnownJobs jobs;
  for (int i = 0; i < 50'000; ++i) jobs.Add(JobOf(i), kNow);
  EXPECT_EQ(jobs.count(), 20'000);
  for (int i = 0; i < 50'000; ++i) jobs.End(i, kNow);
  EXPECT_EQ(jobs.count(), 0);
}

const WallTime kVersionNow = FromSeconds(1'800'000'000);

// RUN-44
TEST(RunnerVersionsTest, OldVersionsAreWarnedOfWithTheDaysThatAreLeft) {
  auto after = [](int days) {
    return VersionWarning("2.99.0", "2.340.0", kVersionNow, kVersionNow + std::chrono::hours(24 * days));
  };
  EXPECT_THAT(after(0), HasSubstr("in 30 days"));
  EXPECT_THAT(after(29), HasSubstr("in 1 day;"));
  EXPECT_THAT(after(31), HasSubstr("at any time"));
  EXPECT_EQ(VersionWarning("2.340.0", "2.340.0", kVersionNow, kVersionNow), "");
  EXPECT_EQ(VersionWarning("", "2.340.0", kVersionNow, kVersionNow), "");
  EXPECT_EQ(VersionWarning("2.340.0", "", kVersionNow, kVersionNow), "");
  EXPECT_FALSE(IsOlderVersion("3", "2.340.0"));
}

}  // namespace

}  // namespace nodepool::runners
