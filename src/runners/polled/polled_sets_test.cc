#include "runners/polled/polled_sets.h"

#include <gmock/gmock.h>

namespace nodepool::runners {
namespace {

using std::chrono::seconds;

// RUN-83, RUN-90
TEST(PolledSetsTest, AllLabelsOfAJobAreTheSets) {
  EXPECT_TRUE(Fits({"Small", "gpu"}, {"small", "GPU", "big"}));
  EXPECT_FALSE(Fits({"Small", "gpu"}, {"small"}));
  EXPECT_TRUE(Fits({}, {"small"}));
}

// RUN-94
TEST(PolledSetsTest, PollsSlowDown) {
  PollPauses pauses{seconds(2), seconds(10)};
  EXPECT_EQ(pauses.Next(true), seconds(2));
  Duration pause{};
  for (int i = 0; i < 20; ++i) pause = pauses.Next(false);
  EXPECT_EQ(pause, seconds(10));
  EXPECT_EQ(pauses.Next(true), seconds(2));
}

}  // namespace
}  // namespace nodepool::runners
