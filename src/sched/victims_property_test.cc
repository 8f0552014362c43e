#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "sched/quota.h"
#include "sched/victims.h"

namespace nodepool::sched {
namespace {

struct VictimsCase {
  std::vector<UnusedNode> unused;
  Resources shortage;
  std::set<LabelName> wanted;

  VictimsCase() {
    int count = *rc::gen::inRange(0, 7);
    for (int i = 0; i < count; ++i) {
      UnusedNode node{
          NodeId(std::to_string(i)), {}, FromSeconds(*rc::gen::inRange(1, 5)), {{"instances", 1}}};
      node.labels.emplace_back(*rc::gen::element<std::string>("a", "b", "c"));
      node.resources["cores"] = *rc::gen::inRange(0, 8);
      unused.push_back(std::move(node));
    }
    if (*rc::gen::arbitrary<bool>()) shortage["instances"] = *rc::gen::inRange(1, 4);
    if (*rc::gen::arbitrary<bool>()) shortage["cores"] = *rc::gen::inRange(1, 12);
    if (*rc::gen::inRange(0, 6) == 0) shortage["licences"] = 1;
    if (*rc::gen::arbitrary<bool>()) wanted.insert(LabelName("b"));
  }

  const UnusedNode& Find(const NodeId& id) const {
    return *std::ranges::find_if(unused, [&](const UnusedNode& node) { return node.id == id; });
  }
  bool Suffices(const std::vector<NodeId>& victims) const {
    Resources missing = shortage;
    for (const NodeId& id : victims) Subtract(missing, Find(id).resources);
    return std::ranges::all_of(shortage, [&](const auto& entry) { return missing[entry.first] <= 0; });
  }
  bool IsSpared(const UnusedNode& node) const {
    return std::ranges::any_of(node.labels, [&](const LabelName& label) { return wanted.contains(label); });
  }
};

// D-22, launcher.md 10.5
TEST(VictimsPropertyTest, EnoughOrNoneAndNoneThatIsWanted) {
  EXPECT_TRUE(rc::check([] {
    VictimsCase c;
    std::vector<NodeId> victims = ChooseVictims(c.unused, c.shortage, c.wanted);
    for (const NodeId& id : victims) RC_ASSERT(!c.IsSpared(c.Find(id)));
    if (!victims.empty()) {
      RC_ASSERT(c.Suffices(victims));
      victims.pop_back();
      RC_ASSERT(!c.Suffices(victims));
      return;
    }
    std::vector<NodeId> all;
    for (const UnusedNode& node : c.unused) {
      if (!c.IsSpared(node)) all.push_back(node.id);
    }
    RC_ASSERT(c.Suffices({}) || !c.Suffices(all));
  }));
}

TEST(VictimsPropertyTest, TheOldestGoFirst) {
  EXPECT_TRUE(rc::check([] {
    VictimsCase c;
    std::vector<NodeId> victims = ChooseVictims(c.unused, c.shortage, c.wanted);
    for (std::size_t i = 1; i < victims.size(); ++i)
      RC_ASSERT(c.Find(victims[i - 1]).ready_since <= c.Find(victims[i]).ready_since);
  }));
}

}  // namespace
}  // namespace nodepool::sched
