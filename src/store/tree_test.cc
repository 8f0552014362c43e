#include "store/tree.h"

#include <gtest/gtest.h>

#include "async/task_group.h"
#include "store/record_kinds.h"
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
    w.faulty.ClearCalls();
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

namespace nodepool::store::paths {

namespace {

TEST(Paths, OfNodesReadBack) {
  NodeId id("0000000107");
  EXPECT_EQ(Node(id), "/nodepool/nodes/0000000107");
  EXPECT_EQ(NodeLock(id), "/nodepool/nodes/0000000107/lock");
  EXPECT_EQ(ParseBelowNodes(Node(id)).part, BelowNodes::Part::kRecord);
  EXPECT_EQ(ParseBelowNodes(Node(id)).id, id);
  EXPECT_EQ(ParseBelowNodes(NodeLock(id)).part, BelowNodes::Part::kOther);
  EXPECT_EQ(ParseBelowNodes(NodeLock(id) + "/x__lock__0000000001").part, BelowNodes::Part::kContender);
  EXPECT_EQ(ParseBelowNodes(NodeLock(id) + "/x__rlock__0000000001").part, BelowNodes::Part::kOther);
  EXPECT_EQ(ParseBelowNodes("/nodepool/nodesy/1").part, BelowNodes::Part::kOther);
}

TEST(Paths, OfRequestsReadBack) {
  RequestId id("200-0000000012");
  EXPECT_EQ(ParseRequest(Request(id)), id);
  EXPECT_FALSE(ParseRequest(Request(id) + "/x"));
  EXPECT_EQ(ParseBelowRequestLocks(RequestLock(id))->id, id);
  EXPECT_EQ(ParseBelowRequestLocks(RequestLock(id) + "/x__lock__0000000001")->contender,
            "x__lock__0000000001");
  EXPECT_FALSE(ParseBelowRequestLocks(RequestLock(id) + "/other"));
}

TEST(Paths, OfImagesReadBack) {
  UploadKey key{BuildKey{ImageName("deb12"), BuildId("4f0e")}, ProviderName("east"), UploadId("0000000001")};
  EXPECT_EQ(Upload(key), "/nodepool/images/deb12/builds/4f0e/providers/east/images/0000000001");
  EXPECT_EQ(ParseBelowImages(Upload(key)).part, BelowImages::Part::kUpload);
  EXPECT_EQ(ParseBelowImages(Upload(key)).key, key);
  EXPECT_EQ(ParseBelowImages("/nodepool/images/deb12").part, BelowImages::Part::kImage);
  EXPECT_EQ(ParseBelowImages("/nodepool/images/deb12/pause").part, BelowImages::Part::kPause);
  EXPECT_EQ(ParseBelowImages("/nodepool/images/deb12/builds/4f0e").part, BelowImages::Part::kBuild);
  EXPECT_EQ(ParseBelowImages("/nodepool/images/deb12/builds/lock").part, BelowImages::Part::kOther);
  EXPECT_EQ(ParseBelowImages("/nodepool/images/deb12/builds/4f0e/providers").part, BelowImages::Part::kOther);
  EXPECT_EQ(ParseBelowImages("/nodepool/images/deb12/builds/4f0e/providers/p").part,
            BelowImages::Part::kProvider);
  EXPECT_EQ(ParseBelowImages(Uploads(key.build, key.provider) + "/lock").part, BelowImages::Part::kOther);
}

TEST(Paths, OfComponentsShowTheKind) {
  EXPECT_EQ(ParseComponent("/nodepool/components/pool/np010000000003"), ComponentKind::kPool);
  EXPECT_FALSE(ParseComponent("/nodepool/components/pool"));
  EXPECT_FALSE(ParseComponent("/nodepool/components/web/x0000000003"));
  EXPECT_EQ(Below(kComponents, "/nodepool/components/pool/np010000000003"), "pool/np010000000003");
}

}  // namespace

}  // namespace nodepool::store::paths
