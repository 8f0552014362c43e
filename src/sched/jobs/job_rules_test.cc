#include "sched/jobs/job_rules.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace nodepool::sched {
namespace {

JobRule Rule(std::string name, std::optional<std::int64_t> limit = 1) { return {std::move(name), limit, {}}; }

std::string FoundId(const JobRules& rules, const std::string& job) {
  const JobRules::Entry* found = rules.Find(job);
  return found == nullptr ? "" : found->id.value;
}

// D-67, operations.13.5
TEST(JobRulesTest, TheMatchingRuleWithTheLowestIdDecides) {
  JobRules rules;
  EXPECT_FALSE(rules.Set(JobId("5"), Rule("unit", 2)));
  EXPECT_FALSE(rules.Set(JobId("7"), Rule("unit", 3)));
  EXPECT_FALSE(rules.Set(JobId("6"), Rule("^unit-(a|b)$")));
  EXPECT_FALSE(rules.Set(JobId("8"), Rule("^unit")));
  struct Case {
    std::string job, id;
  };
  for (const Case& c : {Case{"unit", "5"}, Case{"unit-a", "6"}, Case{"unit-c", "8"}, Case{"my-unit", ""},
                        Case{"uni", ""}, Case{"", ""}, Case{"^unit", ""}}) {
    EXPECT_EQ(FoundId(rules, c.job), c.id) << c.job;
  }
  EXPECT_EQ(rules.Find("unit")->limit, 2);
  rules.Erase(JobId("5"));
  EXPECT_EQ(FoundId(rules, "unit"), "7");
  rules.Set(JobId("4"), Rule("^u"));
  EXPECT_EQ(FoundId(rules, "unit"), "4");
  rules.Set(JobId("4"), Rule("other"));
  EXPECT_EQ(FoundId(rules, "unit"), "7");
}

TEST(JobRulesTest, LimitsBelowOneHoldNothing) {
  JobRules rules;
  rules.Set(JobId("1"), Rule("a", std::nullopt));
  rules.Set(JobId("2"), Rule("b", -3));
  EXPECT_EQ(rules.Find("a")->limit, 0);
  EXPECT_EQ(rules.Find("b")->limit, 0);
}

TEST(JobRulesTest, ExpressionsThatCannotBeUsed) {
  JobRules rules;
  for (std::string bad : {"^(", "^[", "^((a{900}){900}){900}", "^\\1"}) {
    std::optional<Error> fault = rules.Set(JobId("1"), Rule(bad));
    EXPECT_TRUE(fault) << bad;
    EXPECT_EQ(FoundId(rules, "a"), "");
  }
  EXPECT_FALSE(rules.Set(JobId("1"), Rule("(not an expression"))) << "it does not begin with ^";
}

// Expressions for which backtracking matchers take practically for ever.
TEST(JobRulesTest, MatchingTakesLinearTime) {
  Expected<JobMatcher> matcher = JobMatcher::Make("^(a*)*(a*)*(a*)*$");
  ASSERT_TRUE(matcher);
  EXPECT_FALSE(matcher->Matches(std::string(254, 'a') + "b"));
  EXPECT_FALSE(matcher->Matches(std::string(300, 'a'))) << "no job is called so";
}

TEST(JobRulesTest, HoldsAreCountedByNodeForTheMatchedJobs) {
  NodesByJob held{{"foo", {NodeId("1"), NodeId("2")}}, {"foo-bar", {NodeId("3")}}};
  NodesByJob noted{{"foo", {NodeId("2"), NodeId("4")}}, {"bar", {NodeId("5")}}};
  EXPECT_EQ(CountHolds(*JobMatcher::Make("foo"), held, noted), 3u) << "foo-bar is another job";
  EXPECT_EQ(CountHolds(*JobMatcher::Make("^foo"), held, noted), 4u);
  EXPECT_EQ(CountHolds(*JobMatcher::Make("none"), held, noted), 0u);
}

class ResolveNodeTest : public ::testing::Test {
 protected:
  std::string Meant(const std::string& name) {
    KnownNodes known{
        [this](const NodeId& id) { return nodes_.contains(id); },
        [this](const std::string& text) -> const std::set<NodeId>& { return FindOrEmpty(named_, text); },
        [this](const NodeId& id) { return in_use_.contains(id); }};
    return ResolveNode(name, known).value_or(NodeId()).value;
  }

  std::set<NodeId> nodes_{NodeId("0000000107"), NodeId("0000000108"), NodeId("0000000109")};
  std::set<NodeId> in_use_;
  std::map<std::string, std::set<NodeId>> named_{{"host.example.org", {NodeId("0000000107")}},
                                                 {"host", {NodeId("0000000107")}},
                                                 {"i-9", {NodeId("0000000109")}},
                                                 {"busy", {NodeId("0000000107"), NodeId("0000000108")}},
                                                 {"0000000108", {NodeId("0000000109")}}};
};

// D-67, operations.13.9
TEST_F(ResolveNodeTest, Table) {
  struct Case {
    std::string name, id;
  };
  for (const Case& c :
       {Case{"0000000107", "0000000107"}, Case{"np0000000107", "0000000107"}, Case{"0000000999", ""},
        Case{"host.example.org", "0000000107"}, Case{"host", "0000000107"}, Case{"i-9", "0000000109"},
        Case{"0000000108", "0000000108"}, Case{"trusty-cloud-a-107", "0000000107"},
        Case{"trusty-cloud-a-0000000108.example.org", "0000000108"}, Case{"trusty-cloud-a-1", ""},
        Case{"trusty-cloud-a-", ""}, Case{"trusty-12345678901", ""}, Case{"107", ""}, Case{"", ""},
        Case{"np", ""}, Case{"-107", "0000000107"}}) {
    EXPECT_EQ(Meant(c.name), c.id) << c.name;
  }
}

TEST_F(ResolveNodeTest, OfTheSlotsOfAHostTheOneInUse) {
  EXPECT_EQ(Meant("busy"), "");
  in_use_ = {NodeId("0000000108")};
  EXPECT_EQ(Meant("busy"), "0000000108");
  in_use_.insert(NodeId("0000000107"));
  EXPECT_EQ(Meant("busy"), "");
}

}  // namespace
}  // namespace nodepool::sched
