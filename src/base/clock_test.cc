#include "base/clock.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/testing/manual_clock.h"

namespace nodepool {

namespace {

using std::chrono::seconds;

TEST(ClockTest, SecondsRoundTripKeepsMicroseconds) {
  EXPECT_NEAR(ToSeconds(FromSeconds(1726605896.4318976)), 1726605896.4318976, 1e-6);
}

TEST(ClockTest, SecondsOutOfRangeAreBounded) {
  EXPECT_LT(ToSeconds(FromSeconds(1e300)), 1e10);
  EXPECT_EQ(ToSeconds(FromSeconds(std::numeric_limits<double>::quiet_NaN())), 0);
}

TEST(ManualClockTest, RunsTimersInOrderOfTimeThenAge) {
  testing::ManualClock clock;
  std::string order;
  SteadyTime start = clock.SteadyNow();
  clock.CallAt(start + seconds(2), [&] { order += 'c'; });
  clock.CallAt(start + seconds(1), [&] { order += 'a'; });
  clock.CallAt(start + seconds(1), [&] { order += 'b'; });
  clock.AdvanceTo(start + seconds(1));
  EXPECT_EQ(order, "ab");
  clock.AdvanceTo(start + seconds(5));
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(clock.SteadyNow(), start + seconds(5));
}

TEST(ManualClockTest, TimerSetByATimerRunsInTheSameAdvance) {
  testing::ManualClock clock;
  SteadyTime start = clock.SteadyNow();
  SteadyTime inner_ran{};
  clock.CallAt(start + seconds(1),
               [&] { clock.CallAt(clock.SteadyNow() + seconds(1), [&] { inner_ran = clock.SteadyNow(); }); });
  clock.AdvanceTo(start + seconds(10));
  EXPECT_EQ(inner_ran, start + seconds(2));
}

TEST(ManualClockTest, CancelledTimerDoesNotRun) {
  testing::ManualClock clock;
  bool ran = false;
  auto id = clock.CallAt(clock.SteadyNow() + seconds(1), [&] { ran = true; });
  EXPECT_TRUE(clock.CancelTimer(id));
  EXPECT_FALSE(clock.CancelTimer(id));
  clock.AdvanceTo(clock.SteadyNow() + seconds(2));
  EXPECT_FALSE(ran);
}

TEST(ManualClockTest, WallClockShiftLeavesSteadyTimeAlone) {
  testing::ManualClock clock;
  WallTime before = clock.Now();
  SteadyTime steady = clock.SteadyNow();
  clock.ShiftWallClock(seconds(-3600));
  EXPECT_EQ(clock.Now(), before - seconds(3600));
  EXPECT_EQ(clock.SteadyNow(), steady);
}

// 2026-01-31 12:00:00 UTC
const WallTime kTime{std::chrono::seconds(1769860800)};

TEST(TimeTextTest, Iso8601BothWays) {
  EXPECT_EQ(Iso8601(kTime), "2026-01-31T12:00:00Z");
  EXPECT_EQ(Iso8601(kTime + std::chrono::milliseconds(999)), "2026-01-31T12:00:00Z");
  EXPECT_EQ(ParseIso8601("2026-01-31T12:00:00Z"), kTime);
  EXPECT_EQ(ParseIso8601("2026-01-31T12:00:00.000000Z"), kTime);
  EXPECT_EQ(ParseIso8601("2026-01-31T12:00:00+00:00"), kTime);
}

TEST(TimeTextTest, TimesThatTheClockDoesNotReachAreItsLast) {
  EXPECT_EQ(ParseIso8601("2999-01-01T00:00:00Z"), FromSeconds(9e9));
  EXPECT_EQ(ParseHttpDate("Fri, 31 Dec 9999 23:59:59 GMT"), FromSeconds(9e9));
  EXPECT_EQ(ParseIso8601("0001-01-01T00:00:00Z"), FromSeconds(-9e9));
  EXPECT_GT(FromSeconds(9e9) - FromSeconds(-9e9), Duration(0)) << "a difference does not overflow";
}

TEST(TimeTextTest, WhatIsNotIso8601InUtcIsRefused) {
  for (const char* text : {"", "2026-01-31", "2026-01-31T12:00:00", "2026-01-31T12:00:00+01:00", "today"}) {
    EXPECT_EQ(ParseIso8601(text), std::nullopt) << text;
  }
}

TEST(TimeTextTest, HttpDateBothWays) {
  EXPECT_EQ(HttpDate(kTime), "Sat, 31 Jan 2026 12:00:00 GMT");
  EXPECT_EQ(ParseHttpDate("Sat, 31 Jan 2026 12:00:00 GMT"), kTime);
}

TEST(TimeTextTest, WhatIsNotAnHttpDateIsRefused) {
  for (const char* text : {"", "yesterday", "Sat, 31 Jan 2026 12:00:00 GMT+1"}) {
    EXPECT_EQ(ParseHttpDate(text), std::nullopt) << text;
  }
}

}  // namespace

}  // namespace nodepool
