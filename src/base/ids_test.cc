#include "base/ids.h"

#include <gtest/gtest.h>

#include <regex>

namespace nodepool {

namespace {

TEST(RandomTest, SameSeedSameSequence) {
  SeededRandom a(7), b(7);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.Next(), b.Next());
}

TEST(RandomTest, BelowAndBetweenStayInRange) {
  SeededRandom random(1);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_LT(random.Below(7), 7u);
    double value = random.Between(0.6, 1.4);
    EXPECT_GE(value, 0.6);
    EXPECT_LT(value, 1.4);
  }
}

TEST(RandomTest, UuidsHaveTheirForm) {
  SystemRandom random;
  EXPECT_TRUE(std::regex_match(random.UuidHex(), std::regex("[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}")));
  EXPECT_TRUE(std::regex_match(random.Uuid(), std::regex("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")));
}

}  // namespace

}  // namespace nodepool
