#include <gtest/gtest.h>

#include "model/resources.h"
#include "sched/requests/fill.h"
#include "sched/requests/random_world_for_test.h"

namespace nodepool::sched {
namespace {

struct FillCase {
  RandomWorld world = RandomWorld::Make();
  PoolView pool = world.pools.front();
  std::vector<LabelName> missing;
  std::set<NodeId> excluded;

  FillCase() {
    for (int i = *rc::gen::inRange(0, 6); i > 0; --i)
      missing.emplace_back(*rc::gen::element<std::string>("small", "large", "odd", "unknown"));
    missing = MissingLabels(missing, {});
    for (const std::set<NodeId>& free : world.free_nodes) {
      for (const NodeId& node : free) {
        if (*rc::gen::inRange(0, 3) == 0) excluded.insert(node);
      }
    }
    if (*rc::gen::inRange(0, 3) == 0) pool.pool.reserved.insert("cores");
    if (*rc::gen::inRange(0, 3) == 0) pool.provider.reserved.insert("ram");
  }
};

TEST(PlanFillPropertyTest, EveryLabelIsReusedLaunchedOrWaitedForOnce) {
  EXPECT_TRUE(rc::check([] {
    FillCase c;
    FillPlan plan = PlanFill(c.pool, c.missing, true, c.excluded);
    std::multiset<LabelName> planned(plan.launch.begin(), plan.launch.end());
    planned.insert(plan.wait.begin(), plan.wait.end());
    for (const FillPlan::Reuse& reuse : plan.reuse) planned.insert(reuse.label);
    RC_ASSERT(planned == std::multiset<LabelName>(c.missing.begin(), c.missing.end()));
  }));
}

TEST(PlanFillPropertyTest, OnlyFreeNodesOfTheLabelAreReusedAndNoneTwice) {
  EXPECT_TRUE(rc::check([] {
    FillCase c;
    RC_ASSERT(PlanFill(c.pool, c.missing, false, c.excluded).reuse.empty());
    std::set<NodeId> taken = c.excluded;
    for (const FillPlan::Reuse& reuse : PlanFill(c.pool, c.missing, true, c.excluded).reuse) {
      RC_ASSERT(taken.insert(reuse.node).second);
      RC_ASSERT(c.pool.labels.at(reuse.label).free_nodes->contains(reuse.node));
    }
  }));
}

// The sum of the launches fits on top of the usage, and uses nothing reserved.
TEST(PlanFillPropertyTest, LaunchesStayWithinTheBudgets) {
  EXPECT_TRUE(rc::check([] {
    FillCase c;
    FillPlan plan = PlanFill(c.pool, c.missing, true, c.excluded);
    Resources need;
    for (const LabelName& label : plan.launch) Add(need, c.pool.labels.at(label).need);
    RC_ASSERT(Fits(c.pool.pool.limit, c.pool.pool.used, need));
    for (const std::string& resource : c.pool.pool.reserved) RC_ASSERT(need[resource] == 0);
    if (c.pool.ignores_provider_quota) return;
    RC_ASSERT(Fits(c.pool.provider.limit, c.pool.provider.used, need));
    for (const std::string& resource : c.pool.provider.reserved) RC_ASSERT(need[resource] == 0);
  }));
}

// No request waits without a reason: the first label that waits lacks what the plan names.
TEST(PlanFillPropertyTest, TheShortageNamesWhatAWaitingLabelLacks) {
  EXPECT_TRUE(rc::check([] {
    FillCase c;
    FillPlan plan = PlanFill(c.pool, c.missing, true, c.excluded);
    bool can_launch =
        !plan.wait.empty() && c.pool.launches_nodes && c.pool.labels.contains(plan.wait.front());
    if (can_launch) RC_ASSERT(!plan.Missing().empty());
    if (plan.wait.empty()) RC_ASSERT(plan.Missing().empty());
  }));
}

TEST(PlanFillPropertyTest, MoreCapacityNeverLaunchesFewer) {
  EXPECT_TRUE(rc::check([] {
    FillCase c;
    FillPlan plan = PlanFill(c.pool, c.missing, true, c.excluded);
    c.pool.pool.limit.clear();
    c.pool.provider.limit.clear();
    c.pool.pool.reserved.clear();
    c.pool.provider.reserved.clear();
    RC_ASSERT(PlanFill(c.pool, c.missing, true, c.excluded).launch.size() >= plan.launch.size());
  }));
}

TEST(MissingLabelsPropertyTest, WantedLessSatisfiedInGroups) {
  EXPECT_TRUE(rc::check([] {
    auto label = rc::gen::element<std::string>("a", "b", "c");
    std::vector<LabelName> wanted, satisfied;
    for (int i = *rc::gen::inRange(0, 8); i > 0; --i) wanted.emplace_back(*label);
    for (const LabelName& name : wanted) {
      if (*rc::gen::arbitrary<bool>()) satisfied.push_back(name);
    }
    std::vector<LabelName> missing = MissingLabels(wanted, satisfied);
    std::vector<LabelName> all = missing;
    all.insert(all.end(), satisfied.begin(), satisfied.end());
    std::ranges::sort(all);
    std::ranges::sort(wanted);
    RC_ASSERT(all == wanted);
    std::set<LabelName> ended;
    for (std::size_t i = 0; i < missing.size(); ++i) {
      RC_ASSERT(!ended.contains(missing[i]));
      if (i + 1 < missing.size() && missing[i + 1] != missing[i]) ended.insert(missing[i]);
    }
  }));
}

}  // namespace
}  // namespace nodepool::sched
