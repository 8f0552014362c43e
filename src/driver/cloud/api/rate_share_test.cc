#include "driver/cloud/api/rate_share.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace nodepool::driver::cloud::api {
namespace {

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

  ManualClock clock;
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

}  // namespace
}  // namespace nodepool::driver::cloud::api
