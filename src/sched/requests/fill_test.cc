#include "sched/requests/fill.h"

#include <gtest/gtest.h>

namespace nodepool::sched {
namespace {

std::vector<LabelName> Labels(std::vector<std::string> names) {
  std::vector<LabelName> labels;
  for (std::string& name : names) labels.emplace_back(std::move(name));
  return labels;
}

PoolView TwoLabelPool() {
  PoolView pool;
  pool.labels[LabelName("a")] = {{{"instances", 1}, {"cores", 2}}};
  pool.labels[LabelName("b")] = {{{"instances", 1}, {"cores", 8}}};
  return pool;
}

TEST(MissingLabelsTest, GroupsByLabelInOrderOfFirstAppearance) {  // launcher.md 10.2, BB-02
  EXPECT_EQ(MissingLabels(Labels({"a", "b", "a"}), {}), Labels({"a", "a", "b"}));
  EXPECT_EQ(MissingLabels(Labels({"a", "b", "a"}), Labels({"a"})), Labels({"a", "b"}));
  EXPECT_TRUE(MissingLabels(Labels({"a"}), Labels({"a"})).empty());
}

TEST(PlanFillTest, ReusesOldestFirstThenLaunches) {
  PoolView pool = TwoLabelPool();
  std::set<NodeId> free = {NodeId("1"), NodeId("2"), NodeId("3")};
  pool.labels[LabelName("a")].free_nodes = &free;
  FillPlan plan = PlanFill(pool, Labels({"a", "a", "a", "b"}), true, {NodeId("2")});
  ASSERT_EQ(plan.reuse.size(), 2u);
  EXPECT_EQ(plan.reuse[0].node, NodeId("1"));
  EXPECT_EQ(plan.reuse[1].node, NodeId("3")) << "excluded ones are passed over";
  EXPECT_EQ(plan.launch, Labels({"a", "b"}));
  EXPECT_TRUE(plan.wait.empty());
}

TEST(PlanFillTest, TakenNodesAreSkipped) {
  PoolView pool = TwoLabelPool();
  std::set<NodeId> free = {NodeId("1"), NodeId("2"), NodeId("3")};
  pool.labels[LabelName("a")].free_nodes = &free;
  pool.labels[LabelName("a")].taken_up_to = NodeId("2");
  FillPlan plan = PlanFill(pool, Labels({"a", "a"}), true);
  ASSERT_EQ(plan.reuse.size(), 1u);
  EXPECT_EQ(plan.reuse[0].node, NodeId("3"));
  EXPECT_EQ(plan.launch, Labels({"a"}));
}

// launcher.md 15.3
TEST(PlanFillTest, ALabelThatWasRefusedToAnEarlierRequestWaitsAndOthersDoNot) {
  PoolView pool = TwoLabelPool();
  pool.refused_labels = {LabelName("b")};
  FillPlan plan = PlanFill(pool, Labels({"b", "a"}), true);
  EXPECT_EQ(plan.launch, Labels({"a"}));
  EXPECT_EQ(plan.wait, Labels({"b"}));
  EXPECT_TRUE(plan.misses_only_labels());
  EXPECT_EQ(plan.Missing(), "b");
}

TEST(PlanFillTest, ReuseFalseLaunchesAlways) {  // BB-10
  PoolView pool = TwoLabelPool();
  std::set<NodeId> free = {NodeId("1")};
  pool.labels[LabelName("a")].free_nodes = &free;
  FillPlan plan = PlanFill(pool, Labels({"a"}), false);
  EXPECT_TRUE(plan.reuse.empty());
  EXPECT_EQ(plan.launch, Labels({"a"}));
}

TEST(PlanFillTest, ANodeWithSeveralLabelsIsPlannedOnce) {
  PoolView pool = TwoLabelPool();
  std::set<NodeId> free = {NodeId("1")};
  pool.labels[LabelName("a")].free_nodes = &free;
  pool.labels[LabelName("b")].free_nodes = &free;
  FillPlan plan = PlanFill(pool, Labels({"a", "b"}), true);
  EXPECT_EQ(plan.reuse.size(), 1u);
  EXPECT_EQ(plan.launch, Labels({"b"}));
}

TEST(PlanFillTest, LabelsThatDoNotFitWaitAndNameTheShortage) {
  PoolView pool = TwoLabelPool();
  pool.pool.limit = {{"instances", 3}};
  pool.pool.used = {{"instances", 2}};
  pool.provider.limit = {{"cores", 100}};
  FillPlan plan = PlanFill(pool, Labels({"a", "a"}), true);
  EXPECT_EQ(plan.launch, Labels({"a"}));
  EXPECT_EQ(plan.wait, Labels({"a"}));
  EXPECT_EQ(plan.pool_shortage, (Resources{{"instances", 1}}));
  EXPECT_TRUE(plan.provider_shortage.empty());
  EXPECT_EQ(plan.Missing(), "instances");
}

TEST(PlanFillTest, ALaterSmallerLabelUsesNothingThatTheFirstWaitsFor) {  // D-33
  PoolView pool = TwoLabelPool();
  pool.pool.limit = {{"cores", 10}};
  pool.pool.used = {{"cores", 5}};
  FillPlan plan = PlanFill(pool, Labels({"b", "a"}), true);
  EXPECT_TRUE(plan.launch.empty());
  EXPECT_EQ(plan.wait, Labels({"b", "a"}));
}

TEST(PlanFillTest, APoolThatLaunchesNothingWaits) {
  PoolView pool = TwoLabelPool();
  pool.launches_nodes = false;
  FillPlan plan = PlanFill(pool, Labels({"a"}), true);
  EXPECT_EQ(plan.wait, Labels({"a"}));
  EXPECT_EQ(plan.Missing(), "");
}

}  // namespace
}  // namespace nodepool::sched
