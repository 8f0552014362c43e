#include "sched/quota.h"

#include <gtest/gtest.h>

#include <limits>

namespace nodepool::sched {
namespace {

TEST(QuotaTest, AbsentLimitIsUnlimitedAbsentAmountIsZero) {
  EXPECT_TRUE(Fits({}, {{"cores", 1000}}, {{"cores", 1}}));
  EXPECT_TRUE(Fits({{"cores", 0}}, {}, {{"ram", 5}}));
  EXPECT_EQ(Shortage({{"cores", 8}, {"ram", 8192}}, {}, {{"cores", 10}, {"instances", 1}, {"ram", 8192}}),
            (Resources{{"cores", 2}}));
}

TEST(QuotaTest, InfiniteLimitAlwaysFits) {
  double infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(Fits({{"cores", infinity}}, {{"cores", 1e18}}, {{"cores", 1}}));
}

TEST(QuotaTest, ALoweredLimitBlocksOnlyWhatTakesMore) {
  Resources over = {{"cores", 20}};
  EXPECT_TRUE(Fits({{"cores", 10}}, over, {{"instances", 1}}));
  EXPECT_FALSE(Fits({{"cores", 10}}, over, {{"cores", 1}}));
}

TEST(QuotaTest, AddAndSubtract) {
  Resources sum = {{"cores", 2}};
  Add(sum, {{"cores", 2}, {"ram", 1}});
  EXPECT_EQ(sum, (Resources{{"cores", 4}, {"ram", 1}}));
  Subtract(sum, {{"cores", 1}});
  EXPECT_EQ(sum, (Resources{{"cores", 3}, {"ram", 1}}));
}

}  // namespace
}  // namespace nodepool::sched
