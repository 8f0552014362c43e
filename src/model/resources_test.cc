#include "model/resources.h"

#include <gtest/gtest.h>

#include <limits>

namespace nodepool {
namespace {

TEST(ResourcesTest, AbsentLimitIsUnlimitedAbsentAmountIsZero) {
  EXPECT_TRUE(Fits({}, {{"cores", 1000}}, {{"cores", 1}}));
  EXPECT_TRUE(Fits({{"cores", 0}}, {}, {{"ram", 5}}));
  EXPECT_EQ(Shortage({{"cores", 8}, {"ram", 8192}}, {}, {{"cores", 10}, {"instances", 1}, {"ram", 8192}}),
            (Resources{{"cores", 2}}));
}

TEST(ResourcesTest, InfiniteLimitAlwaysFits) {
  double infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(Fits({{"cores", infinity}}, {{"cores", 1e18}}, {{"cores", 1}}));
}

TEST(ResourcesTest, ALoweredLimitBlocksOnlyWhatTakesMore) {
  Resources over = {{"cores", 20}};
  EXPECT_TRUE(Fits({{"cores", 10}}, over, {{"instances", 1}}));
  EXPECT_FALSE(Fits({{"cores", 10}}, over, {{"cores", 1}}));
}

TEST(ResourcesTest, AddAndSubtract) {
  Resources sum = {{"cores", 2}};
  Add(sum, {{"cores", 2}, {"ram", 1}});
  EXPECT_EQ(sum, (Resources{{"cores", 4}, {"ram", 1}}));
  Subtract(sum, {{"cores", 1}});
  EXPECT_EQ(sum, (Resources{{"cores", 3}, {"ram", 1}}));
}

TEST(ResourcesTest, FractionsAreExact) {
  Resources used = {{"cores", 0.1}};
  Add(used, {{"cores", 0.1}});
  EXPECT_TRUE(Fits({{"cores", 0.3}}, used, {{"cores", 0.1}}));
  Add(used, {{"cores", 0.1}});
  EXPECT_EQ(used, (Resources{{"cores", 0.3}}));
  Subtract(used, {{"cores", 0.3}});
  EXPECT_EQ(used, (Resources{{"cores", 0}}));
}

TEST(ResourcesTest, UnlimitedLessUnlimitedIsUnlimited) {
  double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(ExactSum(infinity, -infinity), infinity);
  EXPECT_EQ(ExactSum(infinity, -1), infinity);
  EXPECT_EQ(ExactSum(1, -infinity), -infinity);
}

TEST(ResourcesTest, SumsAreExact) {
  ResourceSum sum;
  Resources many = {{"cores", 0.1}, {"ram", 1e9}}, few = {{"cores", 0.2}};
  for (int i = 0; i < 100; ++i) sum.Add(many);
  sum.Add(few);
  for (int i = 0; i < 100; ++i) sum.Subtract(many);
  EXPECT_EQ(sum.total(), few);
  sum.Subtract(few);
  EXPECT_TRUE(sum.total().empty());
}

}  // namespace
}  // namespace nodepool
