#include "operate/nodes.h"

#include <gmock/gmock.h>

#include "store/store_for_test.h"

namespace nodepool::operate {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = Refusal::Kind;

class OperateNodesTest : public ::testing::Test {
 protected:
  NodeId Add(NodeState state) {
    Node node = store::InitNode();
    node.SetState(state, world_.time.loop().Now());
    node.comment = "before";
    node.hold_expiration = 60;
    return world_.Run(world_.store.nodes.Create(std::move(node)));
  }
  Node Read(const NodeId& id) { return world_.Run(world_.store.nodes.Read(id))->record; }
  Loop& loop() { return world_.time.loop(); }

  store::World world_;
};

// ACT-9
TEST_F(OperateNodesTest, AHoldHasReasonAndTime) {
  NodeId id = Add(NodeState::kReady);
  EXPECT_TRUE(world_.Run(HoldNode(loop(), world_.store, id, {"bug 7", 3600}, seconds(5))));
  EXPECT_EQ(Read(id).state, NodeState::kHold);
  EXPECT_EQ(Read(id).comment, "bug 7");
  EXPECT_EQ(Read(id).hold_expiration, 3600);
  EXPECT_TRUE(world_.Run(HoldNode(loop(), world_.store, id, {}, seconds(5))));
  EXPECT_EQ(Read(id).comment, "bug 7") << "what is not given stays";
  EXPECT_EQ(Read(id).hold_expiration, 3600);
  EXPECT_THAT(world_.Run(world_.store.nodes.Contenders(id)), IsEmpty());
}

// ACT-9
TEST_F(OperateNodesTest, AHoldEndsOnce) {
  NodeId id = Add(NodeState::kHold);
  EXPECT_TRUE(world_.Run(EndHold(loop(), world_.store, id, seconds(5))));
  EXPECT_EQ(Read(id).state, NodeState::kUsed);
  Done again = world_.Run(EndHold(loop(), world_.store, id, seconds(5)));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, Kind::kConflict);
  EXPECT_EQ(again.error().why, "Node 0000000000 is not held");
  EXPECT_EQ(Read(id).state, NodeState::kUsed);
}

// ACT-9
TEST_F(OperateNodesTest, ALockedNodeStaysAsItIs) {
  NodeId id = Add(NodeState::kInUse);
  auto lock = world_.Run(world_.store.nodes.TryLock(id));
  SteadyTime start = loop().SteadyNow();
  Done deleted = world_.Run(DeleteNode(loop(), world_.store, id, seconds(1)));
  ASSERT_FALSE(deleted);
  EXPECT_EQ(deleted.error().kind, Kind::kConflict);
  EXPECT_THAT(deleted.error().why, HasSubstr("the node is in use"));
  EXPECT_EQ(loop().SteadyNow() - start, seconds(1));
  EXPECT_EQ(Read(id).state, NodeState::kInUse);
  EXPECT_EQ(world_.Run(world_.store.nodes.Contenders(id)).size(), 1u) << "nothing of ours is left";
  world_.Run(lock->Unlock());
  EXPECT_TRUE(world_.Run(DeleteNode(loop(), world_.store, id, seconds(1))));
  EXPECT_EQ(Read(id).state, NodeState::kDeleting);
}

// ACT-9
TEST_F(OperateNodesTest, AMissingNodeIsNotCreated) {
  Done held = world_.Run(HoldNode(loop(), world_.store, NodeId("0000000042"), {}, seconds(1)));
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().kind, Kind::kNotFound);
  EXPECT_FALSE(world_.Exists("/nodepool"));
}

TEST(OperateNodeIds, AreUpToTenDigits) {
  EXPECT_EQ(ParseNodeId("42"), NodeId("0000000042"));
  for (const char* bad : {"", "x", "-1", "..", "00000000420", "4/2", "42 "})
    EXPECT_FALSE(ParseNodeId(bad)) << bad;
}

}  // namespace
}  // namespace nodepool::operate
