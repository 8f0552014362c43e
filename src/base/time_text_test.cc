#include "base/time_text.h"

#include <gtest/gtest.h>

namespace nodepool {
namespace {

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
