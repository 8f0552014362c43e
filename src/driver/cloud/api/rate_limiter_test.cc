#include "driver/cloud/api/rate_limiter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "async/task_group.h"
#include "async/testing/virtual_time.h"
#include "base/clock.h"
#include "base/testing/manual_clock.h"

namespace nodepool::driver::cloud::api {

namespace {

using ::testing::ElementsAre;
using namespace std::chrono_literals;

class RateShareTest : public ::testing::Test {
 protected:
  SteadyTime Now() const { return clock.SteadyNow(); }
  double Share() const { return share.At(Now()); }
  // A call whose answer takes that long. True: it showed that the service is slow.
  bool Answer(Duration took, const std::string& call = "list") {
    SteadyTime sent = Now();
    clock.AdvanceTo(clock.SteadyNow() + took);
    return share.Answered(call, sent, Now());
  }
  // As many answers as are needed to know what is usual.
  void Learn(Duration took, const std::string& call = "list") {
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(Answer(took, call));
  }

  testing::ManualClock clock;
  RateShare share{0.01, clock.SteadyNow()};
};

// RATE-1
TEST_F(RateShareTest, ItHalvesAtOnceAndGrowsSteadily) {
  share.Refused(Now(), Now());
  EXPECT_DOUBLE_EQ(Share(), 0.5);
  share.Refused(Now(), Now());
  EXPECT_DOUBLE_EQ(Share(), 0.5) << "what was sent before says nothing new";
  clock.AdvanceTo(clock.SteadyNow() + 10s);
  EXPECT_NEAR(Share(), 0.7, 0.001);
  clock.AdvanceTo(clock.SteadyNow() + 1h);
  EXPECT_EQ(Share(), 1);
}

TEST_F(RateShareTest, RefusalsHaveALeastShareAndSilenceALargerOne) {  // RATE-2
  for (int i = 0; i < 20; ++i) {
    clock.AdvanceTo(clock.SteadyNow() + 1ms);
    share.Unanswered(Now(), Now());
  }
  EXPECT_DOUBLE_EQ(Share(), 0.125);
  for (int i = 0; i < 20; ++i) {
    clock.AdvanceTo(clock.SteadyNow() + 1ms);
    share.Refused(Now(), Now());
  }
  EXPECT_NEAR(Share(), 0.01, 0.001);
  clock.AdvanceTo(clock.SteadyNow() + 1ms);
  share.Unanswered(Now(), Now());
  EXPECT_NEAR(Share(), 0.01, 0.001) << "silence never raises it";
}

TEST_F(RateShareTest, ThreeSlowAnswersInARowHalveIt) {  // RATE-3
  Learn(200ms);
  EXPECT_FALSE(Answer(3s));
  EXPECT_FALSE(Answer(3s));
  EXPECT_EQ(Share(), 1);
  EXPECT_TRUE(Answer(3s));
  EXPECT_NEAR(Share(), 0.5, 0.001);
}

TEST_F(RateShareTest, AFastAnswerBetweenSlowOnesClearsTheService) {  // RATE-3
  Learn(200ms);
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(Answer(3s));
    EXPECT_FALSE(Answer(3s));
    EXPECT_FALSE(Answer(200ms));
  }
  EXPECT_EQ(Share(), 1);
}

TEST_F(RateShareTest, EachCallIsComparedWithItsOwnUsualTime) {  // RATE-3
  Learn(200ms);
  Learn(5s, "create");
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(Answer(6s, "create"));
  EXPECT_EQ(Share(), 1) << "creations always take that long";
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(Answer(900ms));
  EXPECT_EQ(Share(), 1) << "less than a second longer";
}

TEST_F(RateShareTest, WhatStaysSlowBecomesUsual) {  // RATE-3
  Learn(200ms);
  int slow = 0;
  for (int i = 0; i < 1000; ++i) slow += Answer(3s) ? 1 : 0;
  EXPECT_GT(slow, 0);
  EXPECT_FALSE(Answer(3s));
  EXPECT_EQ(Share(), 1);
}

class RateLimiterTest : public ::testing::Test {
 protected:
  // The time after which each of `calls` calls passes.
  std::vector<Duration> Pass(RateLimiter& limiter, int calls) {
    SteadyTime before = time.loop().SteadyNow();
    std::vector<Duration> passed;
    for (int i = 0; i < calls; ++i) {
      time.Run(limiter.WaitForTurn());
      passed.push_back(time.loop().SteadyNow() - before);
    }
    return passed;
  }
  testing::VirtualTime time;
};

TEST_F(RateLimiterTest, OneAtATime) {
  RateLimiter limiter(time.loop(), {2s});
  EXPECT_THAT(Pass(limiter, 3), ElementsAre(0s, 2s, 4s));
  time.Advance(1h);
  EXPECT_THAT(Pass(limiter, 2), ElementsAre(0s, 2s)) << "what was not used is not saved up";
}

TEST_F(RateLimiterTest, ABurstPassesAndTheBucketFillsUpAgain) {
  RateLimiter limiter(time.loop(), {1s, 3});
  EXPECT_THAT(Pass(limiter, 5), ElementsAre(0s, 0s, 0s, 1s, 2s));
  time.Advance(2s);
  EXPECT_THAT(Pass(limiter, 3), ElementsAre(0s, 0s, 1s));
}

TEST_F(RateLimiterTest, CallsThatFreeSomethingGoLaterButNotNever) {
  RateLimiter limiter(time.loop(), {1s});
  std::vector<std::string> passed;
  auto call = [](RateLimiter& limiter, RateLimiter::Order order, std::string name,
                 std::vector<std::string>& passed) -> Task<> {
    co_await limiter.WaitForTurn(order);
    passed.push_back(std::move(name));
  };
  TaskGroup tasks(time.loop(), log::Logger("test"));
  tasks.Spawn("first", call(limiter, RateLimiter::Order::kFirst, "first", passed));
  time.Advance(1ms);
  for (std::string name : {"delete 1", "delete 2"})
    tasks.Spawn("later", call(limiter, RateLimiter::Order::kLater, name, passed));
  time.Advance(1ms);
  for (std::string name : {"a", "b", "c", "d", "e"})
    tasks.Spawn("first", call(limiter, RateLimiter::Order::kFirst, name, passed));
  time.Run(tasks.Join());
  EXPECT_THAT(passed, ElementsAre("first", "a", "b", "c", "delete 1", "d", "e", "delete 2"));
}

TEST_F(RateLimiterTest, ACallerThatIsCancelledGivesItsTurnAway) {
  RateLimiter limiter(time.loop(), {10s});
  auto call = [](RateLimiter& limiter, bool& has_passed) -> Task<> {
    co_await limiter.WaitForTurn();
    has_passed = true;
  };
  time.Run(limiter.WaitForTurn());
  bool is_second = false, is_third = false;
  TaskGroup cancelled(time.loop(), log::Logger("test"));
  TaskGroup tasks(time.loop(), log::Logger("test"));
  cancelled.Spawn("second", call(limiter, is_second));
  time.Advance(1s);
  tasks.Spawn("third", call(limiter, is_third));
  time.Advance(1s);
  time.Run(cancelled.Stop());
  time.Advance(8s);
  EXPECT_TRUE(is_third);
  EXPECT_FALSE(is_second);
  time.Run(tasks.Join());
}

TEST_F(RateLimiterTest, TheRateGivesWayAndRecovers) {
  RateLimiter limiter(time.loop(), {100ms});
  SteadyTime sent = time.loop().SteadyNow();
  limiter.Refused(sent);
  EXPECT_DOUBLE_EQ(limiter.Share(), 0.5);
  limiter.Refused(sent);
  EXPECT_DOUBLE_EQ(limiter.Share(), 0.5) << "refusals of the same moment count once";
  time.Advance(5s);
  EXPECT_NEAR(limiter.Share(), 0.6, 0.001);
  limiter.Refused(time.loop().SteadyNow());
  EXPECT_NEAR(limiter.Share(), 0.3, 0.001);
  std::vector<Duration> passed = Pass(limiter, 3);
  EXPECT_GT(passed[2] - passed[1], 250ms);
  EXPECT_LT(passed[2] - passed[1], 350ms);
  time.Advance(40s);
  EXPECT_EQ(limiter.Share(), 1);
}

TEST_F(RateLimiterTest, OneCallInTenSecondsIsAlwaysTried) {
  RateLimiter limiter(time.loop(), {500ms});
  for (int refusal = 0; refusal < 20; ++refusal) {
    time.Advance(1ms);
    limiter.Refused(time.loop().SteadyNow());
  }
  EXPECT_NEAR(limiter.Share(), 0.05, 0.001);
  EXPECT_GE(RateLimiter(time.loop(), {20s}).Share(), 1);
}

TEST_F(RateLimiterTest, AnUnlimitedRateIsLimitedAfterARefusalOnly) {
  RateLimiter limiter(time.loop(), {});
  EXPECT_THAT(Pass(limiter, 3), ElementsAre(0s, 0s, 0s));
  limiter.Refused(time.loop().SteadyNow());
  std::vector<Duration> passed = Pass(limiter, 3);
  EXPECT_GT(passed[2] - passed[1], 10ms);
  time.Advance(1min);
  EXPECT_THAT(Pass(limiter, 3), ElementsAre(0s, 0s, 0s));
}

}  // namespace

}  // namespace nodepool::driver::cloud::api
