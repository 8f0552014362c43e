#include "drivers/static/slot_table.h"

#include <gtest/gtest.h>

namespace nodepool::drivers {
namespace {

using Ids = std::vector<NodeId>;

store::StoredNode Record(const char* id, std::optional<std::int64_t> slot,
                         NodeState state = NodeState::kReady) {
  store::StoredNode node;
  node.id = NodeId(id);
  node.record.slot = slot;
  node.record.state = state;
  return node;
}

// drivers.md 7.2
TEST(SlotTableTest, RecordsAreInTheirSlots) {
  auto a = Record("a", 1), b = Record("b", 0, NodeState::kInUse);
  SlotTable table = MakeSlotTable(3, {&a, &b});
  EXPECT_EQ(table.slots, (Ids{NodeId("b"), NodeId("a"), NodeId()}));
  EXPECT_EQ(table.EmptySlots(), std::vector<int>{2});
  EXPECT_TRUE(table.excess.empty());
}

TEST(SlotTableTest, RecordsWithoutUsableSlotFillTheGaps) {
  auto none = Record("none", std::nullopt), twice = Record("twice", 0), big = Record("big", 7);
  auto first = Record("first", 0);
  SlotTable table = MakeSlotTable(2, {&first, &twice, &none, &big});
  EXPECT_EQ(table.slots, (Ids{NodeId("first"), NodeId("twice")}));
  EXPECT_EQ(table.excess, (Ids{NodeId("none"), NodeId("big")}));
}

TEST(SlotTableTest, RecordsThatVanishOccupyNothing) {
  auto building = Record("x", 0, NodeState::kBuilding), deleting = Record("y", 0, NodeState::kDeleting);
  auto held = Record("z", 1, NodeState::kHold);
  SlotTable table = MakeSlotTable(2, {&building, &deleting, &held});
  EXPECT_EQ(table.EmptySlots(), std::vector<int>{0});
}

TEST(SlotTableTest, NegativeSlotCountMeansNone) {
  auto a = Record("a", 0);
  EXPECT_EQ(MakeSlotTable(-1, {&a}).excess.size(), 1u);
}

TEST(SlotTableTest, UserIsPartOfTheIdentity) {
  Node a, b;
  a.hostname = b.hostname = "host";
  a.username = "one";
  b.username = "two";
  EXPECT_NE(IdentityOf(a), IdentityOf(b));
  EXPECT_EQ(IdentityOf(a).ToString(), "one@host:22");
}

}  // namespace
}  // namespace nodepool::drivers
