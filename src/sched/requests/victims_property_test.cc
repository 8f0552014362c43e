#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "model/resources.h"
#include "sched/requests/victims.h"

namespace nodepool::sched {
namespace {

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

}  // namespace
}  // namespace nodepool::sched
