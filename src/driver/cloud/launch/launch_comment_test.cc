#include "driver/cloud/launch/launch_comment.h"

#include <gtest/gtest.h>

namespace nodepool::driver::cloud {
namespace {

TEST(LaunchCommentTest, WithoutChoiceAndPriceThereIsNone) {
  Instance instance;
  instance.machine_type = "m5.large";
  EXPECT_EQ(LaunchComment(instance, ""), "");
}

TEST(LaunchCommentTest, SaysWhatWhyAndThePrice) {
  Instance instance;
  instance.machine_type = "m5.large";
  EXPECT_EQ(LaunchComment(instance, "m5.large in b, the first choice"),
            "Launched as m5.large in b, the first choice");
  instance.hourly_price = 0.096;
  EXPECT_EQ(LaunchComment(instance, ""), "Launched as m5.large; 0.096 per hour");
  instance.choice = "m5.large in a, chosen by the cloud";
  EXPECT_EQ(LaunchComment(instance, ""), "Launched as m5.large in a, chosen by the cloud; 0.096 per hour");
}

TEST(LaunchCommentTest, OnlyItsOwnKindIsReplaced) {
  EXPECT_TRUE(IsLaunchComment("Launched as x"));
  EXPECT_FALSE(IsLaunchComment("held for Ann"));
}

}  // namespace
}  // namespace nodepool::driver::cloud
