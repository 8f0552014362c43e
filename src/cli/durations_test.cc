#include "cli/durations.h"

#include <gtest/gtest.h>

namespace nodepool::cli {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// operations.md 5.3.
TEST(DurationsTest, AgesHaveFourPartsOfAtLeastTwoDigits) {
  EXPECT_EQ(FormatAge(seconds(0)), "00:00:00:00");
  EXPECT_EQ(FormatAge(milliseconds(59'999)), "00:00:00:59");
  EXPECT_EQ(FormatAge(days(3) + hours(4) + minutes(5) + seconds(6)), "03:04:05:06");
  EXPECT_EQ(FormatAge(days(1234)), "1234:00:00:00");
}

TEST(DurationsTest, NegativeAgesBorrowFromTheDays) {
  EXPECT_EQ(FormatAge(milliseconds(-1500)), "-1:23:59:58");
  EXPECT_EQ(FormatAge(-days(12)), "-12:00:00:00");
}

TEST(DurationsTest, AUnitMayFollowTheNumber) {
  EXPECT_EQ(*ParseDuration("90"), seconds(90));
  EXPECT_EQ(*ParseDuration("90s"), seconds(90));
  EXPECT_EQ(*ParseDuration("5m"), minutes(5));
  EXPECT_EQ(*ParseDuration("1.5h"), minutes(90));
  EXPECT_EQ(*ParseDuration("2d"), hours(48));
  EXPECT_EQ(*ParseDuration("0"), seconds(0));
}

TEST(DurationsTest, AnythingElseIsRefusedWithAnExample) {
  for (const char* text : {"", "s", "-5", "5w", "5 m", "inf", "nan", "1e300", "5mm", "five"}) {
    Expected<Duration> duration = ParseDuration(text);
    ASSERT_FALSE(duration) << text;
    EXPECT_EQ(duration.error().verdict(), Verdict::kInvalid);
    EXPECT_NE(duration.error().message().find("1.5h"), std::string::npos) << duration.error().message();
  }
}

}  // namespace
}  // namespace nodepool::cli
