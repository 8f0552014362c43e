#include "sched/runners/demand.h"

#include <gtest/gtest.h>

namespace nodepool::sched {
namespace {

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

}  // namespace
}  // namespace nodepool::sched
