#include "sched/requests/fill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/node.h"
#include "sched/requests/random_world_for_test.h"

namespace nodepool::sched {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace std::chrono_literals;

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

TEST(ServiceOrderTest, PrecedenceAsTextThenRelativePriorityThenAge) {
  NodeRequest request;
  auto order = [&](std::string id, double relative_priority) {
    request.relative_priority = relative_priority;
    return *OrderOf(RequestId(std::move(id)), request);
  };
  EXPECT_LT(order("100-0000000009", 50), order("200-0000000001", 0));
  EXPECT_LT(order("1000-0000000009", 0), order("200-0000000001", 0)) << "as text, not as a number";
  EXPECT_LT(order("200-0000000009", 1), order("200-0000000001", 2));
  EXPECT_LT(order("200-0000000001", 1), order("200-0000000002", 1));
  EXPECT_LT(order("200-0000000002", 1), order("200-0000000001", 1.5));
  EXPECT_LT(order("200-0000000002", 1.5), order("200-0000000001", 2));
}

// coordination.md 3.2
TEST(ServiceOrderTest, RequestsBeyond31BitsFollow) {
  auto order = [](std::string id) { return *OrderOf(RequestId(std::move(id)), {}); };
  std::vector<std::string> by_age{"0000000009", "2147483647", "-2147483648", "-2147483647",
                                  "-000000001", "4294967296", "10000000000", "word"};
  for (std::size_t i = 1; i < by_age.size(); ++i) {
    EXPECT_LT(order("200-" + by_age[i - 1]), order("200-" + by_age[i])) << by_age[i];
  }
}

TEST(ServiceOrderTest, OtherIdsHaveNoPlace) {
  EXPECT_FALSE(OrderOf(RequestId("nodash"), {}));
  EXPECT_FALSE(OrderOf(RequestId("a-b-c"), {}));
}

UnusedNode Unused(std::string id, double ready_since, double cores = 2) {
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
  EXPECT_THAT(ChooseVictims({Unused("1", 30), Unused("2", 10), Unused("3", 20)}, {{"cores", 3}}),
              ElementsAre(NodeId("2"), NodeId("3")));
}

TEST(VictimsTest, AnOlderOneIsSparedWhenAYoungerOneIsEnough) {  // D-22
  EXPECT_THAT(ChooseVictims({Unused("1", 10, 1), Unused("2", 20, 8)}, {{"cores", 8}}),
              ElementsAre(NodeId("2")));
}

TEST(VictimsTest, WantedOnesAndThoseOfOtherPoolsAreDeletedLast) {  // D-22
  std::vector<UnusedNode> unused = {Wanted(OfOtherPool(Unused("1", 10))), Wanted(Unused("2", 20)),
                                    OfOtherPool(Unused("3", 30)), Unused("4", 40)};
  EXPECT_THAT(ChooseVictims(unused, {{"instances", 1}}), ElementsAre(NodeId("4")));
  EXPECT_THAT(ChooseVictims(unused, {{"instances", 2}}), ElementsAre(NodeId("4"), NodeId("3")));
  EXPECT_THAT(ChooseVictims(unused, {{"instances", 3}}), ElementsAre(NodeId("4"), NodeId("3"), NodeId("2")));
}

TEST(VictimsTest, SomeWhereNobodyKnowsHowManyAreEnough) {  // BB-44
  std::vector<UnusedNode> unused = {Unused("1", 30), Unused("2", 10), Unused("3", 20)};
  EXPECT_THAT(ChooseSome(unused, {{"cores", 100}}, 2), ElementsAre(NodeId("2"), NodeId("3")));
  EXPECT_THAT(ChooseSome(unused, {{"cores", 1}}, 4), SizeIs(3));
  EXPECT_THAT(ChooseSome(unused, {{"volumes", 1}}, 4), IsEmpty());
}

TEST(VictimsTest, NoneWhenTheyAreNotEnough) {
  EXPECT_THAT(ChooseVictims({Unused("1", 10)}, {{"instances", 2}}), IsEmpty());
  EXPECT_THAT(ChooseVictims({Unused("1", 10)}, {{"volumes", 1}}), IsEmpty());
  EXPECT_THAT(ChooseVictims({}, {{"instances", 1}}), IsEmpty());
}

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

struct VictimsCase {
  std::vector<UnusedNode> unused;
  Resources shortage;

  VictimsCase() {
    int count = *rc::gen::inRange(0, 7);
    for (int i = 0; i < count; ++i) {
      UnusedNode node{.id = NodeId(std::to_string(i)),
                      .is_wanted = *rc::gen::arbitrary<bool>(),
                      .is_of_other_pool = *rc::gen::arbitrary<bool>(),
                      .ready_since = FromSeconds(*rc::gen::inRange(1, 5)),
                      .resources = {{"instances", 1}}};
      node.resources["cores"] = *rc::gen::inRange(0, 8);
      unused.push_back(std::move(node));
    }
    if (*rc::gen::arbitrary<bool>()) shortage["instances"] = *rc::gen::inRange(1, 4);
    if (*rc::gen::arbitrary<bool>()) shortage["cores"] = *rc::gen::inRange(1, 12);
    if (*rc::gen::inRange(0, 6) == 0) shortage["licences"] = 1;
  }

  const UnusedNode& Find(const NodeId& id) const {
    return *std::ranges::find_if(unused, [&](const UnusedNode& node) { return node.id == id; });
  }
  std::vector<NodeId> AllThat(std::function<bool(const UnusedNode&)> is_meant) const {
    std::vector<NodeId> ids;
    for (const UnusedNode& node : unused) {
      if (is_meant(node)) ids.push_back(node.id);
    }
    return ids;
  }
  bool Suffices(const std::vector<NodeId>& victims) const {
    Resources missing = shortage;
    for (const NodeId& id : victims) Subtract(missing, Find(id).resources);
    return std::ranges::all_of(shortage, [&](const auto& entry) { return missing[entry.first] <= 0; });
  }
};

auto Rank(const UnusedNode& node) {
  return std::tie(node.is_wanted, node.is_of_other_pool, node.ready_since);
}

// D-22, launcher.md 10.5
TEST(VictimsPropertyTest, EnoughOrNoneAndNotOneTooMany) {
  EXPECT_TRUE(rc::check([] {
    VictimsCase c;
    std::vector<NodeId> victims = ChooseVictims(c.unused, c.shortage);
    std::vector<NodeId> all = c.AllThat([](const UnusedNode&) { return true; });
    RC_ASSERT(victims.empty() == (c.Suffices({}) || !c.Suffices(all)));
    RC_ASSERT((victims.empty() || c.Suffices(victims)));
    for (const NodeId& spared : victims) {
      std::vector<NodeId> fewer = victims;
      std::erase(fewer, spared);
      RC_ASSERT(!c.Suffices(fewer));
    }
  }));
}

// D-22
TEST(VictimsPropertyTest, TheLeastNeededAreDeletedFirst) {
  EXPECT_TRUE(rc::check([] {
    VictimsCase c;
    std::vector<NodeId> victims = ChooseVictims(c.unused, c.shortage);
    for (std::size_t i = 1; i < victims.size(); ++i) {
      // RC_ASSERT itself cannot compare tuples where clang uses libstdc++ 14.
      bool is_ordered = Rank(c.Find(victims[i - 1])) <= Rank(c.Find(victims[i]));
      RC_ASSERT(is_ordered);
    }
    for (const NodeId& victim : victims) {
      auto is_missed_less = [&](const UnusedNode& node) { return Rank(node) < Rank(c.Find(victim)); };
      RC_ASSERT(!c.Suffices(c.AllThat(is_missed_less)));
    }
  }));
}

Resources AnyResources() {
  Resources resources;
  for (const char* name : {"instances", "cores", "ram"}) {
    if (*rc::gen::arbitrary<bool>()) resources[name] = *rc::gen::inRange(0, 20);
  }
  return resources;
}

TEST(QuotaPropertyTest, SubtractUndoesAdd) {
  EXPECT_TRUE(rc::check([] {
    Resources amount = AnyResources(), more = AnyResources(), sum = amount;
    Add(sum, more);
    Subtract(sum, more);
    for (const auto& [resource, value] : sum)
      RC_ASSERT(value == (amount.contains(resource) ? amount[resource] : 0));
  }));
}

// launcher.md 19.1: absent in an amount is nothing, absent in a limit is no limit.
TEST(QuotaPropertyTest, ShortageIsWhatWouldHaveToBeAdded) {
  EXPECT_TRUE(rc::check([] {
    Resources limit = AnyResources(), used = AnyResources(), need = AnyResources();
    Resources shortage = Shortage(limit, used, need);
    for (const auto& [resource, missing] : shortage) {
      RC_ASSERT(missing > 0);
      RC_ASSERT(limit[resource] + missing == used[resource] + need[resource]);
    }
    Resources raised = limit;
    Add(raised, shortage);
    RC_ASSERT(Fits(raised, used, need));
    RC_ASSERT(Fits({}, used, need));
    RC_ASSERT(Fits(limit, used, {}));
  }));
}

TEST(QuotaPropertyTest, NeedingMoreNeverFitsBetter) {
  EXPECT_TRUE(rc::check([] {
    Resources limit = AnyResources(), used = AnyResources(), need = AnyResources(), more = AnyResources();
    Resources both = need;
    Add(both, more);
    RC_ASSERT((Fits(limit, used, need) || !Fits(limit, used, both)));
  }));
}

// launcher.md 12.2
TEST(GiveWayTest, WhoHoldsNodesAndHasWaitedInVainGivesWayToAnEarlierRequest) {
  FillPlan plan;
  plan.wait = Labels({"a"});
  const SteadyTime begin{1h};
  Progress progress{.ready = 1, .since = begin};
  bool is_held_up = true;
  auto decide = [&](Duration later) {
    return DecideGiveWay(plan, progress, 2min, begin + later, [&] { return is_held_up; });
  };
  EXPECT_FALSE(decide(119s).is_due);
  EXPECT_EQ(decide(119s).ask_at, begin + 2min);
  EXPECT_TRUE(decide(120s).is_due);
  EXPECT_FALSE(decide(120s).ask_at);
  is_held_up = false;
  EXPECT_FALSE(decide(130s).is_due) << "nobody would gain by it";
  EXPECT_EQ(decide(130s).ask_at, begin + 250s);
}

// launcher.md 12.2
TEST(GiveWayTest, WithoutNodesOrWithALaunchOrForItsTurnARequestJustWaits) {
  auto is_asleep = [](const FillPlan& plan, const Progress& progress) {
    GiveWay decision = DecideGiveWay(plan, progress, 2min, SteadyTime(1h), [] { return true; });
    return !decision.is_due && !decision.ask_at;
  };
  FillPlan plan;
  plan.wait = Labels({"a"});
  EXPECT_FALSE(is_asleep(plan, {.ready = 1}));
  EXPECT_TRUE(is_asleep(plan, {.ready = 0}));
  EXPECT_TRUE(is_asleep(plan, {.ready = 1, .is_launching = true}));
  plan.turns_awaited = 1;
  EXPECT_TRUE(is_asleep(plan, {.ready = 1})) << "it waits for launches of this launcher to end";
}

// launcher.md 8, step 5, BB-03
TEST(OrderPropertyTest, PrecedenceThenPriorityThenAge) {
  EXPECT_TRUE(rc::check([] {
    auto draw = [] {
      NodeRequest request;
      request.relative_priority = *rc::gen::inRange(-2, 12);
      std::string sequence = fmt::format("{:010}", *rc::gen::inRange(0, 1000));
      RequestId id(*rc::gen::element<std::string>("100", "200", "900") + "-" + sequence);
      return *OrderOf(id, request);
    };
    ServiceOrder a = draw(), b = draw();
    bool is_before = a.precedence != b.precedence                 ? a.precedence < b.precedence
                     : a.relative_priority != b.relative_priority ? a.relative_priority < b.relative_priority
                                                                  : a.sequence < b.sequence;
    RC_ASSERT((a < b) == is_before);
  }));
}

}  // namespace

}  // namespace nodepool::sched
