#include "launcher/cloud_fixture_for_test.h"

namespace nodepool::launcher {
namespace {

using std::chrono::seconds;

class ReuseTest : public LauncherTest {
 protected:
  NodeId MakeFreeNode() {
    RequestId id = Request({"small"});
    EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
    NodeId node = Read(id)->nodes.at(0);
    DeleteRequest(id);
    EXPECT_TRUE(Await([&] { return Read(node)->is_free(); }));
    return node;
  }
};

TEST_F(ReuseTest, FulfilledRequestWithoutConsumerLeavesAFreeNode) {  // BB-08
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  NodeId node = Read(id)->nodes[0];
  DeleteRequest(id);
  EXPECT_TRUE(Await([&] { return Read(node)->is_free(); }, seconds(1)));
  EXPECT_FALSE(IsLocked(node));
}

TEST_F(ReuseTest, ReadyNodeOfAnUnknownRequestBecomesFree) {  // LA-64, coordination.17.19
  StartLauncher();
  NodeId node =
      AddNode(NodeState::kReady, [](Node& record) { record.allocated_to = RequestId("100-0000000123"); });
  EXPECT_TRUE(Await([&] { return Read(node)->is_free(); }, seconds(1)));
}

// D-04: the last client would take its own keys beside our fields as a sign that the node is still its own.
TEST_F(ReuseTest, UnknownKeysStayAsLongAsTheNodeIsAllocated) {
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  NodeId node = Read(id)->nodes.at(0);
  ChangeNode(node, [](Node& record) { record.foreign.Add("build_id", "b-17"); });
  EXPECT_EQ(Read(node)->foreign.unknown, R"("build_id": "b-17")");
  DeleteRequest(id);
  ASSERT_TRUE(Await([&] { return Read(node)->is_free(); }));
  EXPECT_EQ(Read(node)->foreign.unknown, "");
}

TEST_F(ReuseTest, ReusesAFreeNodeUnlessReuseIsOff) {  // coordination.17.9, BB-10, BB-12
  StartLauncher();
  NodeId node = MakeFreeNode();
  Node before = *Read(node);
  time_.Advance(seconds(10));
  RequestId second = Request({"small"}, [](NodeRequest& request) {
    request.requestor = "other";
    request.tenant_name = "t2";
  });
  ASSERT_TRUE(AwaitState(second, RequestState::kFulfilled));
  EXPECT_EQ(Read(second)->nodes[0], node);
  EXPECT_EQ(Read(node)->requestor, "other");
  EXPECT_EQ(Read(node)->tenant_name, "t2");
  EXPECT_EQ(Read(node)->launcher, before.launcher);
  EXPECT_EQ(Read(node)->created_time, before.created_time);
  EXPECT_EQ(Read(node)->state_time, before.state_time);
  DeleteRequest(second);
  ASSERT_TRUE(Await([&] { return Read(node)->is_free(); }));
  RequestId third = Request({"small"}, [](NodeRequest& request) { request.reuse = false; });
  ASSERT_TRUE(AwaitState(third, RequestState::kFulfilled));
  EXPECT_NE(Read(third)->nodes[0], node);
}

TEST_F(ReuseTest, NodesOfOthersAreNotReused) {  // BB-11
  AddPool("cloud", "second", {"elsewhere"});
  StartLauncher();
  RequestId owner = Request({"small"});
  ASSERT_TRUE(AwaitState(owner, RequestState::kFulfilled));
  std::set<NodeId> taboo = {Read(owner)->nodes[0]};
  taboo.insert(AddNode(NodeState::kReady, [](Node& node) { node.pool = PoolName("second"); }));
  NodeId locked = AddNode(NodeState::kReady);
  taboo.insert(locked);
  auto lock = time_.Run(client_store_->nodes.TryLock(locked));
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_FALSE(taboo.contains(Read(id)->nodes[0]));
  time_.Run(lock->Unlock());
}

TEST_F(ReuseTest, RequestDeletedDuringLaunchLeavesAFreeNode) {  // BB-07, coordination.17.25
  script().launch_time = seconds(10);
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kPending));
  DeleteRequest(id);
  ASSERT_TRUE(Await([&] { return FreeNodes() == 1; }));
  NodeId node = Nodes()[0];
  EXPECT_FALSE(IsLocked(node));
  RequestId next = Request({"small"});
  ASSERT_TRUE(AwaitState(next, RequestState::kFulfilled));
  EXPECT_EQ(Read(next)->nodes[0], node);
}

class ZoneTest : public CloudTest {
 protected:
  std::set<std::string> ZonesOf(const RequestId& id) {
    std::set<std::string> zones;
    for (const NodeId& node : NodesOf(id)) zones.insert(Read(node)->az.value_or("none"));
    return zones;
  }
};

TEST_F(ZoneTest, AllNodesOfARequestShareOneZone) {  // BB-02
  AddCloud({.simulation = "availability-zones: [az1, az2, az3]"});
  StartLauncher();
  std::set<std::string> seen;
  for (int i = 0; i < 10; ++i) {
    RequestId id = Request({"small", "small"}, [](NodeRequest& request) { request.reuse = false; });
    ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
    EXPECT_EQ(ZonesOf(id).size(), 1u);
    seen.merge(ZonesOf(id));
    auto nodes = Take(id);
    Return(nodes);
  }
  EXPECT_GT(seen.size(), 1u) << "not always the same one";
}

TEST_F(ZoneTest, FreeNodesOfAnotherZoneAreDeleted) {  // D-22
  AddCloud({.pool = "max-servers: 2"});
  for (const char* zone : {"az1", "az2"}) {
    AddNode(NodeState::kReady, [&](Node& node) {
      node.az = zone;
      node.resources = {{"instances", 1}};
    });
  }
  StartLauncher();
  RequestId id = Request({"small", "small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_THAT(ZonesOf(id), ::testing::SizeIs(1));
}

TEST_F(ZoneTest, ReusedNodeDecidesTheZoneOfTheOthers) {  // BB-13
  AddCloud({.labels = {"small", "large"}, .simulation = "availability-zones: [az1, az2, az3]"});
  StartLauncher();
  for (int i = 0; i < 10; ++i) {
    AddNode(NodeState::kReady, [](Node& node) { node.az = "az2"; });
    RequestId id = Request({"small", "large", "large"});
    ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
    EXPECT_THAT(ZonesOf(id), ::testing::ElementsAre("az2"));
    auto nodes = Take(id);
    Return(nodes);
    ASSERT_TRUE(Await([&] { return Nodes().empty(); }));
  }
}

TEST_F(ZoneTest, PoolMayNameItsZones) {  // LA-42
  AddCloud({.pool = "availability-zones: [az2]"});
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_THAT(ZonesOf(id), ::testing::ElementsAre("az2"));
}

TEST_F(ZoneTest, RenamedZonesAreFollowed) {  // LA-23
  AddCloud();
  StartLauncher();
  auto nodes = Use({"small"});
  Change([](drivers::FakeSimulation& cloud) { cloud.availability_zones = {"new"}; });
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_THAT(ZonesOf(id), ::testing::ElementsAre("new"));
}

}  // namespace
}  // namespace nodepool::launcher
