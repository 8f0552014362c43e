#include "cli/durations.h"

#include <gtest/gtest.h>

namespace nodepool::cli {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

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
