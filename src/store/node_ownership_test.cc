#include "store/store_for_test.h"

namespace nodepool::store {
namespace {

TEST(NodeOwnershipTest, AClaimedNodeIsItsOwnersUntilItIsReleased) {
  World w;
  NodeId node = w.Run(w.store.nodes.Create(InitNode()));
  RequestId request = w.Run(w.store.requests.Create("100", Requested("small"), true));
  EXPECT_EQ(w.Run(w.store.nodes.Owner(node)), std::nullopt);
  EXPECT_TRUE(w.Run(w.store.nodes.Claim(node, "me", ToState(NodeState::kInUse), request)));
  EXPECT_EQ(w.Run(w.store.nodes.Owner(node)), "me");
  EXPECT_EQ(w.Run(w.store.nodes.Read(node))->record.state, NodeState::kInUse);
  EXPECT_EQ(w.Run(w.store.requests.Read(request)), std::nullopt);
  EXPECT_FALSE(w.Run(w.store.nodes.TryLock(node)));
  EXPECT_FALSE(w.Run(w.store.nodes.Release(node, "you", ToState(NodeState::kUsed))));
  EXPECT_TRUE(w.Run(w.store.nodes.Release(node, "me", ToState(NodeState::kUsed))));
  EXPECT_EQ(w.Run(w.store.nodes.Read(node))->record.state, NodeState::kUsed);
  EXPECT_TRUE(w.Run(w.store.nodes.TryLock(node)));
}

TEST(NodeOwnershipTest, ANodeThatIsNotToBeChangedIsNotReleased) {
  World w;
  NodeId node = w.Run(w.store.nodes.Create(InitNode()));
  RequestId request = w.Run(w.store.requests.Create("100", Requested("small"), true));
  EXPECT_TRUE(w.Run(w.store.nodes.Claim(node, "me", ToState(NodeState::kInUse), request)));
  EXPECT_FALSE(w.Run(w.store.nodes.Release(node, "me", [](Node&) { return Change::kSkip; })));
  EXPECT_EQ(w.Run(w.store.nodes.Owner(node)), "me");
}

TEST(NodeOwnershipTest, ANodeThatIsLockedOrWhoseRequestIsGoneCannotBeClaimed) {
  World w;
  NodeId node = w.Run(w.store.nodes.Create(InitNode()));
  RequestId request = w.Run(w.store.requests.Create("100", Requested("small"), true));
  auto locked = w.Run(w.store.nodes.TryLock(node));
  EXPECT_FALSE(w.Run(w.store.nodes.Claim(node, "me", ToState(NodeState::kInUse), request)));
  w.Run(locked->Unlock());
  w.Run(w.store.requests.Delete(request));
  EXPECT_FALSE(w.Run(w.store.nodes.Claim(node, "me", ToState(NodeState::kInUse), request)));
  EXPECT_EQ(w.Run(w.store.nodes.Owner(node)), std::nullopt);
  EXPECT_FALSE(w.Run(w.store.nodes.Claim(NodeId("0000009999"), "me", ToState(NodeState::kInUse), request)));
}

}  // namespace
}  // namespace nodepool::store
