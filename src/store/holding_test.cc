#include "store/holding.h"

#include "async/task_group.h"
#include "store/store_for_test.h"

namespace nodepool::store {
namespace {

Task<bool> MarkUsed(LockedNode& node) {
  bool is_written = co_await node.Update(ToState(NodeState::kUsed));
  co_return is_written;
}

class HoldingTest : public ::testing::Test {
 protected:
  NodeId NewNode() { return w.Run(w.store.nodes.Create(InitNode())); }
  template <class Call>
  std::size_t Writes(Call call) {
    w.faulty.ForgetCalls();
    call();
    return w.faulty.CountWrites();
  }

  World w;
};

TEST_F(HoldingTest, UnlocksAfterTheUse) {
  NodeId id = NewNode();
  EXPECT_TRUE(w.Run(Holding(w.store.nodes.TryLock(id), MarkUsed)));
  EXPECT_EQ(w.Run(w.store.nodes.Read(id))->record.state, NodeState::kUsed);
  EXPECT_TRUE(w.Run(w.store.nodes.Contenders(id)).empty());
  std::optional<LockedNode> other = w.Run(w.store.nodes.TryLock(id));
  EXPECT_FALSE(w.Run(Holding(w.store.nodes.TryLock(id), MarkUsed))) << "there is no lock to use";
  EXPECT_TRUE(other->is_held());
  w.Run(other->Unlock());
  EXPECT_FALSE(other->is_held());
}

TEST_F(HoldingTest, DoesNotUnlockWhatTheUseRemovedOrUnlocked) {
  NodeId id = NewNode();
  auto unlock = [](LockedNode& node) { return node.Unlock(); };
  auto remove = [](LockedNode& node) { return node.Remove(); };
  EXPECT_EQ(Writes([&] { w.Run(Holding(w.store.nodes.TryLock(id), unlock)); }), 2u);
  EXPECT_EQ(Writes([&] { w.Run(Holding(w.store.nodes.TryLock(id), remove)); }), 2u);
  EXPECT_FALSE(w.Run(w.store.nodes.Read(id)));
}

TEST(HoldingCancellationTest, UnlocksWhenItsTaskIsCancelledAtAnyStep) {
  struct Locking {
    static Task<> Run(Store& store, NodeId id) { co_await Holding(store.nodes.TryLock(id), MarkUsed); }
  };
  bool is_over = false;
  for (int steps = 0; !is_over; ++steps) {
    ASSERT_LT(steps, 1000);
    World world;
    NodeId id = world.Run(world.store.nodes.Create(InitNode()));
    TaskGroup group(world.time.loop(), log::Logger("test"));
    group.Spawn("lock", Locking::Run(world.store, id));
    world.time.loop().context().restart();
    for (int i = 0; i < steps && group.size() > 0; ++i) world.time.loop().context().poll_one();
    is_over = group.size() == 0;
    world.Run(group.Stop());
    EXPECT_TRUE(world.Run(world.store.nodes.Contenders(id)).empty()) << steps;
  }
}

TEST_F(HoldingTest, DoesNotCallTheUseWithoutTheLock) {
  std::optional<zk::HeldLock> other = w.Run(w.store.tree.TryLockNamed("slot"));
  int calls = 0;
  auto count = [&](const zk::HeldLock&) {
    ++calls;
    return Default<bool>();
  };
  EXPECT_FALSE(w.Run(w.store.tree.Holding(w.store.tree.TryLockNamed("slot"), count)));
  EXPECT_EQ(calls, 0);
  w.Run(w.store.tree.Unlock(*other));
  w.Run(w.store.tree.Holding(w.store.tree.TryLockNamed("slot"), count));
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(w.Children("/nodepool/locks/slot").empty());
}

}  // namespace
}  // namespace nodepool::store
