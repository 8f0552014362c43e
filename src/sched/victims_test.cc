#include "sched/victims.h"

#include <gtest/gtest.h>

namespace nodepool::sched {
namespace {

UnusedNode Node(std::string id, std::string label, double ready_since) {
  return {NodeId(std::move(id)),
          {LabelName(std::move(label))},
          FromSeconds(ready_since),
          {{"instances", 1}, {"cores", 2}}};
}

TEST(VictimsTest, OldestFirstAndOnlyAsManyAsNeeded) {  // D-22, BB-28, LA-76
  auto victims =
      ChooseVictims({Node("1", "a", 30), Node("2", "a", 10), Node("3", "a", 20)}, {{"cores", 3}}, {});
  EXPECT_EQ(victims, (std::vector<NodeId>{NodeId("2"), NodeId("3")}));
}

TEST(VictimsTest, LabelsSomebodyWaitsForAreSpared) {
  auto victims =
      ChooseVictims({Node("1", "wanted", 10), Node("2", "a", 20)}, {{"instances", 1}}, {LabelName("wanted")});
  EXPECT_EQ(victims, (std::vector<NodeId>{NodeId("2")}));
}

TEST(VictimsTest, NoneWhenTheyWouldNotDo) {
  EXPECT_TRUE(ChooseVictims({Node("1", "a", 10)}, {{"instances", 2}}, {}).empty());
  EXPECT_TRUE(ChooseVictims({Node("1", "a", 10)}, {{"volumes", 1}}, {}).empty());
  EXPECT_TRUE(ChooseVictims({}, {{"instances", 1}}, {}).empty());
}

}  // namespace
}  // namespace nodepool::sched
