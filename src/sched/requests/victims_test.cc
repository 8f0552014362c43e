#include "sched/requests/victims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nodepool::sched {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

UnusedNode Node(std::string id, double ready_since, double cores = 2) {
  return {.id = NodeId(std::move(id)),
          .ready_since = FromSeconds(ready_since),
          .resources = {{"instances", 1}, {"cores", cores}}};
}

UnusedNode Wanted(UnusedNode node) {
  node.is_wanted = true;
  return node;
}

UnusedNode OfOtherPool(UnusedNode node) {
  node.is_of_other_pool = true;
  return node;
}

TEST(VictimsTest, OldestFirstAndOnlyAsManyAsNeeded) {  // D-22, BB-28, LA-76
  EXPECT_THAT(ChooseVictims({Node("1", 30), Node("2", 10), Node("3", 20)}, {{"cores", 3}}),
              ElementsAre(NodeId("2"), NodeId("3")));
}

TEST(VictimsTest, AnOlderOneIsSparedWhenAYoungerOneIsEnough) {  // D-22
  EXPECT_THAT(ChooseVictims({Node("1", 10, 1), Node("2", 20, 8)}, {{"cores", 8}}), ElementsAre(NodeId("2")));
}

TEST(VictimsTest, WantedOnesAndThoseOfOtherPoolsAreDeletedLast) {  // D-22
  std::vector<UnusedNode> unused = {Wanted(OfOtherPool(Node("1", 10))), Wanted(Node("2", 20)),
                                    OfOtherPool(Node("3", 30)), Node("4", 40)};
  EXPECT_THAT(ChooseVictims(unused, {{"instances", 1}}), ElementsAre(NodeId("4")));
  EXPECT_THAT(ChooseVictims(unused, {{"instances", 2}}), ElementsAre(NodeId("4"), NodeId("3")));
  EXPECT_THAT(ChooseVictims(unused, {{"instances", 3}}), ElementsAre(NodeId("4"), NodeId("3"), NodeId("2")));
}

TEST(VictimsTest, SomeWhereNobodyKnowsHowManyAreEnough) {  // BB-44
  std::vector<UnusedNode> unused = {Node("1", 30), Node("2", 10), Node("3", 20)};
  EXPECT_THAT(ChooseSome(unused, {{"cores", 100}}, 2), ElementsAre(NodeId("2"), NodeId("3")));
  EXPECT_THAT(ChooseSome(unused, {{"cores", 1}}, 4), SizeIs(3));
  EXPECT_THAT(ChooseSome(unused, {{"volumes", 1}}, 4), IsEmpty());
}

TEST(VictimsTest, NoneWhenTheyAreNotEnough) {
  EXPECT_THAT(ChooseVictims({Node("1", 10)}, {{"instances", 2}}), IsEmpty());
  EXPECT_THAT(ChooseVictims({Node("1", 10)}, {{"volumes", 1}}), IsEmpty());
  EXPECT_THAT(ChooseVictims({}, {{"instances", 1}}), IsEmpty());
}

}  // namespace
}  // namespace nodepool::sched
