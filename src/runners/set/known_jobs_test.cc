#include "runners/set/known_jobs.h"

#include <gtest/gtest.h>

namespace nodepool::runners {
namespace {

using std::chrono::minutes;

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

}  // namespace
}  // namespace nodepool::runners
