#include "runners/set/set_health.h"

#include <gmock/gmock.h>

namespace nodepool::runners {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

const WallTime kHealthNow = FromSeconds(1'700'000'000);

// RUN-41
TEST(SetHealthTest, ThreeFailuresInARowHoldBackStarts) {
  SetHealth health;
  health.DidNotStart("no ssh", kHealthNow);
  health.DidNotStart("no ssh", kHealthNow);
  EXPECT_FALSE(health.HeldBackUntil(kHealthNow));
  EXPECT_EQ(health.Fault(kHealthNow).text, "");
  health.DidNotStart("no ssh", kHealthNow);
  EXPECT_EQ(health.HeldBackUntil(kHealthNow), kHealthNow + minutes(1));
  EXPECT_THAT(health.Fault(kHealthNow).text, HasSubstr("do not start on their nodes: no ssh"));
  EXPECT_THAT(health.Fault(kHealthNow).remedy, HasSubstr("nodepool exec"));
  EXPECT_FALSE(health.HeldBackUntil(kHealthNow + minutes(1)));
  for (int i = 0; i < 20; ++i) health.DidNotStart("no ssh", kHealthNow);
  EXPECT_EQ(health.HeldBackUntil(kHealthNow), kHealthNow + minutes(10));
  health.Started();
  EXPECT_FALSE(health.HeldBackUntil(kHealthNow));
  EXPECT_EQ(health.Fault(kHealthNow).text, "");
}

// RUN-42
TEST(SetHealthTest, RequestsThatFail) {
  SetHealth health;
  health.NoNode("no node of label x", kHealthNow);
  EXPECT_TRUE(health.LacksNodes(kHealthNow + seconds(60)));
  EXPECT_FALSE(health.LacksNodes(kHealthNow + seconds(61)));
  EXPECT_EQ(health.Fault(kHealthNow).text, "they get no nodes: no node of label x");
  EXPECT_EQ(health.Fault(kHealthNow + minutes(2)).text, "");
}

// RUN-44
TEST(SetHealthTest, ARefusedVersion) {
  SetHealth health;
  health.Deprecated("2.300.0", kHealthNow);
  EXPECT_EQ(health.HeldBackUntil(kHealthNow), kHealthNow + minutes(10));
  EXPECT_THAT(health.Fault(kHealthNow).text, HasSubstr("2.300.0"));
}

TEST(SetHealthTest, FaultsOfTheServiceComeFirst) {
  SetHealth health;
  health.NoNode("no node", kHealthNow);
  health.ServiceFault({"status 401", "correct the token"});
  EXPECT_EQ(health.Fault(kHealthNow).text, "status 401");
  health.ServiceFault({});
  EXPECT_EQ(health.Fault(kHealthNow).text, "they get no nodes: no node");
}

}  // namespace
}  // namespace nodepool::runners
