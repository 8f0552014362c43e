#include "store/node_deletion.h"

#include <gmock/gmock.h>

#include "store/erase.h"
#include "store/store_for_test.h"

namespace nodepool::store {
namespace {

using nodepool::testing::FaultyZk;
using ::testing::ElementsAre;

class NodeDeletionTest : public ::testing::Test {
 protected:
  LockedNode NewNode() {
    return w.Run(w.store.nodes.CreateLocked(InitNode(), ToState(NodeState::kBuilding)));
  }
  std::string NodePath(const LockedNode& node) { return "/nodepool/nodes/" + node.id().str(); }

  World w;
};

// coordination.11.9
TEST_F(NodeDeletionTest, RemovingANodeIsOneWrite) {
  LockedNode node = NewNode();
  w.faulty.ForgetCalls();
  w.Run(node.Remove());
  EXPECT_EQ(w.faulty.CountWrites(), 1u);
  EXPECT_FALSE(w.Exists(NodePath(node)));
  w.Run(node.Remove());
}

// coordination.11.9 and D-05: nobody becomes the holder of a node that is going.
TEST_F(NodeDeletionTest, RemovingANodeSweepsAwayThoseWhoWaitBeforeItsHolder) {
  LockedNode node = NewNode();
  std::string lock = NodePath(node) + "/lock";
  std::string own = lock + "/" + w.Children(lock).at(0);
  for (std::string waiting : {"/00000000000000000000000000000000__lock__0000000007",
                              "/ffffffffffffffffffffffffffffffff__lock__0000000008"})
    w.Put(lock + waiting, "");
  std::vector<std::string> gone;
  w.memory.OnWrite([&](std::int64_t, const zk::WatchEvent& change) {
    if (change.type != zk::EventType::kDeleted) return;
    gone.push_back(change.path);
    EXPECT_FALSE(w.Exists(NodePath(node))) << change.path << " went alone";
  });
  w.Run(node.Remove());
  w.memory.OnWrite(nullptr);
  EXPECT_THAT(gone, ElementsAre(lock + "/ffffffffffffffffffffffffffffffff__lock__0000000008",
                                lock + "/00000000000000000000000000000000__lock__0000000007", own, lock,
                                NodePath(node)));
}

TEST_F(NodeDeletionTest, WhoComesWhileANodeIsRemovedGoesWithIt) {
  LockedNode node = NewNode();
  int arrivals = 0;
  w.faulty.FailWhen([&](const FaultyZk::Call& call) {
    if (call.name != "Multi" || arrivals == 3) return FaultyZk::Fault::kNone;
    std::string number = std::to_string(1000000000 + arrivals++);
    w.Put(NodePath(node) + "/lock/33333333333333333333333333333333__lock__" + number, "");
    return FaultyZk::Fault::kNone;
  });
  w.Run(node.Remove());
  EXPECT_EQ(arrivals, 3);
  EXPECT_FALSE(w.Exists(NodePath(node)));
}

// Our lock was removed by force and another holds the node now.
TEST_F(NodeDeletionTest, ANodeThatAnotherHoldsIsNotRemoved) {
  LockedNode node = NewNode();
  std::string lock = NodePath(node) + "/lock";
  w.Erase(lock + "/" + w.Children(lock).at(0));
  w.Put(lock + "/33333333333333333333333333333333__lock__0000000007", "");
  std::string before = w.Picture();
  EXPECT_EQ(VerdictThrown([&] { w.Run(node.Remove()); }), Verdict::kLostSession);
  EXPECT_EQ(w.Picture(), before);
}

// operations.16.8
TEST_F(NodeDeletionTest, AnErasedNodeGoesInOneTransaction) {
  LockedNode node = NewNode();
  std::string lock = NodePath(node) + "/lock";
  w.Put(lock + "/00000000000000000000000000000000__lock__0000000007", "");
  w.memory.OnWrite([&](std::int64_t, const zk::WatchEvent& change) {
    EXPECT_FALSE(w.Exists(NodePath(node))) << change.path << " was changed alone";
  });
  w.Run(EraseNode(w.store, node.id(), w.time.loop().Now()));
  w.memory.OnWrite(nullptr);
  EXPECT_FALSE(w.Exists(NodePath(node)));
}

TEST_F(NodeDeletionTest, RemovingANodeThatOthersWroteGoesThrough) {
  LockedNode node = NewNode();
  w.Put(NodePath(node), "garbage");
  w.Run(node.Remove());
  EXPECT_FALSE(w.Exists(NodePath(node)));
}

// coordination.17.21
TEST_F(NodeDeletionTest, OnlyAnEmptyNodeIsRemovedAsEmpty) {
  w.Put("/nodepool/nodes/0000000001/lock/44444444444444444444444444444444__lock__0000000000", "");
  w.Put("/nodepool/nodes/0000000002", "{}");
  w.Run(w.store.nodes.RemoveEmpty(NodeId("0000000001")));
  w.Run(w.store.nodes.RemoveEmpty(NodeId("0000000002")));
  w.Run(w.store.nodes.RemoveEmpty(NodeId("0000000003")));
  EXPECT_EQ(w.Children("/nodepool/nodes"), std::vector<std::string>{"0000000002"});
}

}  // namespace
}  // namespace nodepool::store
