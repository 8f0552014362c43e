#include "runners/set/runner_versions.h"

#include <gmock/gmock.h>

namespace nodepool::runners {
namespace {

using ::testing::HasSubstr;

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
