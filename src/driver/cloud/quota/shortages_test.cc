#include "driver/cloud/quota/shortages.h"

#include <gtest/gtest.h>

namespace nodepool::driver::cloud {
namespace {

using namespace std::chrono_literals;

const std::vector<std::string> kThree = {"a", "b", "c"};

TEST(ShortagesTest, ThePreferredOneUntilItFails) {
  Shortages shortages;
  SteadyTime now{1h};
  EXPECT_EQ(shortages.Next(kThree, {}, now), 0u);
  shortages.Add("a", now);
  EXPECT_EQ(shortages.Next(kThree, {}, now), 1u);
  EXPECT_EQ(shortages.Next(kThree, {}, now + Shortages::kLast - 1s), 1u);
  EXPECT_EQ(shortages.Next(kThree, {}, now + Shortages::kLast), 0u);
  shortages.Remove("a");
  EXPECT_EQ(shortages.Next(kThree, {}, now), 0u);
}

TEST(ShortagesTest, WithoutAnyLeftTheOldestShortageIsTriedFirst) {
  Shortages shortages;
  SteadyTime now{1h};
  shortages.Add("b", now);
  shortages.Add("a", now + 1s);
  shortages.Add("c", now + 2s);
  EXPECT_EQ(shortages.Next(kThree, {}, now + 3s), 1u);
  EXPECT_EQ(shortages.Next(kThree, {1}, now + 3s), 0u);
  EXPECT_EQ(shortages.Next(kThree, {0, 1, 2}, now + 3s), std::nullopt);
  EXPECT_EQ(shortages.Next({}, {}, now), std::nullopt);
}

TEST(ShortagesTest, AChoiceTriesEachOnceAndSaysWhy) {
  Shortages shortages;
  SteadyTime now{1h};
  shortages.Add("b", now);
  CandidateChoice choice(kThree, shortages, now);
  EXPECT_EQ(choice.name(), "a");
  EXPECT_EQ(choice.Why(now), "");
  EXPECT_EQ(choice.Explain(now, WallTime()), "a, the first choice");
  EXPECT_TRUE(choice.MoveOn(now));
  EXPECT_EQ(choice.name(), "c");
  EXPECT_EQ(choice.Why(now), "; no capacity for a, b");
  EXPECT_EQ(choice.Explain(now + 1min, FromSeconds(3600)),
            "c; no capacity for a until 01:04 UTC, b until 01:04 UTC");
  EXPECT_EQ(choice.Explain(now + 1h, FromSeconds(3600)), "c");
  EXPECT_TRUE(choice.MoveOn(now));
  EXPECT_EQ(choice.name(), "b");
  choice.Created();
  EXPECT_FALSE(shortages.Contains("b", now));
  EXPECT_FALSE(choice.MoveOn(now));
}

TEST(ShortagesTest, OnlySomeOfManyShortagesAreNamed) {
  Shortages shortages;
  SteadyTime now{1h};
  std::vector<std::string> candidates = {"a", "b", "c", "d", "e", "f"};
  for (const char* lacking : {"a", "b", "c", "d", "e"}) shortages.Add(lacking, now);
  CandidateChoice choice(candidates, shortages, now);
  EXPECT_EQ(choice.Explain(now, FromSeconds(0)),
            "f; no capacity for a until 00:05 UTC, b until 00:05 UTC, c until 00:05 UTC and 2 others");
}

TEST(ShortagesTest, WithoutCandidatesThereIsNothingToMoveTo) {
  Shortages shortages;
  CandidateChoice choice({}, shortages, SteadyTime());
  EXPECT_EQ(choice.index(), 0u);
  EXPECT_EQ(choice.name(), "");
  EXPECT_FALSE(choice.MoveOn(SteadyTime()));
}

}  // namespace
}  // namespace nodepool::driver::cloud
