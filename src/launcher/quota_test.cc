#include "launcher/launcher_fixture_for_test.h"

namespace nodepool::launcher {
namespace {

using std::chrono::seconds;

class QuotaTest : public LauncherTest {};

TEST_F(QuotaTest, WaitsAtThePoolsLimitAndContinuesWhenANodeIsReturned) {  // BB-31, D-33
  log::Capture log;
  AddPool("cloud", "main", {"small"}).max_servers = 2;
  StartLauncher();
  auto nodes = Use({"small", "small"});
  RequestId second = Request({"small", "small"});
  ASSERT_TRUE(AwaitState(second, RequestState::kPending));
  EXPECT_TRUE(Await([&] { return IsPaused(); }));
  RequestId third = Request({"small"});
  time_.Advance(seconds(30));
  EXPECT_EQ(Read(second)->state, RequestState::kPending);
  EXPECT_EQ(Read(third)->state, RequestState::kRequested) << "it would take what the second waits for";
  EXPECT_EQ(script().launches, 2);
  EXPECT_EQ(log.Count("Waiting for capacity"), 1);
  Return(nodes);
  ASSERT_TRUE(AwaitState(second, RequestState::kFulfilled));
  EXPECT_EQ(script().most_at_once, 2);
  auto more = Take(second);
  Return(more);
  EXPECT_TRUE(AwaitState(third, RequestState::kFulfilled));
  EXPECT_TRUE(Await([&] { return !IsPaused(); }));
}

// The pool has room for the smaller request, which came later.
TEST_F(QuotaTest, NobodyTakesThePoolsCapacityThatAnEarlierRequestWaitsFor) {  // D-33
  AddPool("cloud", "main", {"small", "large"}).limits = {{"cores", 6}};
  script().needs[LabelName("large")] = {{"instances", 1}, {"cores", 6}};
  StartLauncher();
  auto nodes = Use({"small"});
  RequestId large = Request({"large"});
  ASSERT_TRUE(AwaitState(large, RequestState::kPending));
  RequestId small = Request({"small"});
  time_.Advance(seconds(30));
  EXPECT_EQ(Read(small)->state, RequestState::kRequested);
  Return(nodes);
  ASSERT_TRUE(AwaitState(large, RequestState::kFulfilled));
  auto large_nodes = Take(large);
  Return(large_nodes);
  EXPECT_TRUE(AwaitState(small, RequestState::kFulfilled));
}

TEST_F(QuotaTest, AnUnusedNodeIsDeletedForAnotherLabel) {  // LA-76, BB-28, D-22
  AddPool("cloud", "main", {"small", "large"}).max_servers = 1;
  AddNode(NodeState::kReady, [](Node& node) { node.resources = {{"instances", 1}}; });
  StartLauncher();
  RequestId id = Request({"large"});
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(script().deleted.size(), 1u);
}

TEST_F(QuotaTest, NodesInUseAreNotDeleted) {  // BB-28
  AddPool("cloud", "main", {"small", "large"}).max_servers = 2;
  RequestId owner = Request({"small"});
  StartLauncher();
  ASSERT_TRUE(AwaitState(owner, RequestState::kFulfilled));
  NodeId locked = AddNode(NodeState::kReady, [](Node& node) { node.resources = {{"instances", 1}}; });
  auto lock = time_.Run(client_store_->nodes.TryLock(locked));
  RequestId id = Request({"large"});
  ASSERT_TRUE(AwaitState(id, RequestState::kPending));
  time_.Advance(std::chrono::minutes(20));
  EXPECT_EQ(NodesIn(NodeState::kReady).size(), 2u);
  EXPECT_EQ(Read(id)->state, RequestState::kPending);
  time_.Run(lock->Unlock());
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(Read(owner)->state, RequestState::kFulfilled);
}

TEST_F(QuotaTest, OnlyAsManyUnusedNodesAsNeededAreDeleted) {  // D-22
  AddPool("cloud", "main", {"small", "large"}).max_servers = 4;
  for (int i = 0; i < 4; ++i) {
    AddNode(NodeState::kReady, [](Node& node) { node.resources = {{"instances", 1}}; });
    time_.Advance(seconds(1));
  }
  StartLauncher();
  RequestId id = Request({"large"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  time_.Advance(seconds(60));
  EXPECT_THAT(script().deleted, ::testing::ElementsAre(NodeId("0000000000"))) << "the oldest";
}

// Otherwise a free node of the wanted label that the request cannot take, here because the driver vetoes it,
// would block the request for ever.
TEST_F(QuotaTest, FreeNodesThatTheRequestCannotUseAreDeleted) {  // D-22
  AddPool("cloud", "main", {"small"}).max_servers = 1;
  NodeId useless = AddNode(NodeState::kReady, [](Node& node) { node.resources = {{"instances", 1}}; });
  script().not_reusable = {useless};
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  auto nodes = Take(id);
  Return(nodes);
  ASSERT_TRUE(Await([&] { return Nodes().empty(); }));
  time_.Advance(std::chrono::minutes(6));
  AddNode(NodeState::kReady, [](Node& node) { node.resources = {{"instances", 1}}; });
  RequestId fresh = Request({"small"}, [](NodeRequest& request) { request.reuse = false; });
  EXPECT_TRUE(AwaitState(fresh, RequestState::kFulfilled));
}

TEST_F(QuotaTest, RequestDeletedWhileWaitingIsNoticedAtOnce) {
  AddPool("cloud", "main", {"small"}).max_servers = 1;
  StartLauncher();
  auto nodes = Use({"small"});
  RequestId second = Request({"small"});
  ASSERT_TRUE(AwaitState(second, RequestState::kPending));
  RequestId third = Request({"small"});
  DeleteRequest(second);
  EXPECT_TRUE(AwaitState(third, RequestState::kPending)) << "it is the next in line now";
  Return(nodes);
  EXPECT_TRUE(AwaitState(third, RequestState::kFulfilled));
}

// Once as a node of its tenant, not again as a part of its request's promise.
TEST_F(QuotaTest, AReadyNodeOfAnUnfinishedRequestCountsOnceForItsTenant) {  // LA-09
  config_->common.tenant_limits["tenant-1"] = {{"instances", 3}};
  auto of_tenant = [](NodeRequest& request) { request.tenant_name = "tenant-1"; };
  AddNode(NodeState::kReady, [](Node& node) { node.resources = {{"instances", 1}}; });
  script().launch_time = std::chrono::hours(1);
  StartLauncher();
  RequestId first = Request({"small", "small"}, of_tenant);
  ASSERT_TRUE(Await([&] { return FreeNodes() == 0 && NodesIn(NodeState::kBuilding).size() == 1; }));
  RequestId second = Request({"small"}, of_tenant);
  EXPECT_TRUE(AwaitState(second, RequestState::kPending));
  RequestId third = Request({"small"}, of_tenant);
  time_.Advance(seconds(30));
  EXPECT_EQ(Read(third)->state, RequestState::kRequested) << "the share is used up";
}

TEST_F(QuotaTest, QuotaRefusalIsNoFailureAndUsesANewNode) {  // BB-38
  script().launch_error = [](int launch) -> std::optional<Error> {
    if (launch < 2) return Error(Verdict::kQuota, "Quota exceeded");
    return std::nullopt;
  };
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(Read(id)->nodes[0], NodeId("0000000002"));
  EXPECT_TRUE(Await([&] { return Nodes().size() == 1; }));
}

TEST_F(QuotaTest, ARefusedRequestThatTakesAReadyNodeDoesNotWaitAnyMore) {  // D-33
  script().launch_error = [](int) { return Error(Verdict::kQuota, "Quota exceeded"); };
  Launcher& launcher = *StartLauncher().launcher;
  RequestId id = Request({"small"});
  ASSERT_TRUE(Await([&] { return IsPaused(); }));
  zk_.SetLatency(seconds(1));
  NodeId free = AddNode(NodeState::kReady);
  ASSERT_TRUE(Await([&] { return IsLocked(free); }));
  EXPECT_FALSE(launcher.Providers().at(0).pools.at(0).is_waiting);
  EXPECT_EQ(Read(id)->state, RequestState::kPending) << "it is still taking the node";
  zk_.SetLatency(seconds(0));
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
}

TEST_F(QuotaTest, RequestThatWaitsIsDeclinedWhenItsLabelBecomesImpossible) {  // LA-82
  AddPool("cloud", "main", {"small", "large"}).max_servers = 1;
  StartLauncher();
  auto nodes = Use({"small"});
  RequestId id = Request({"large"});
  ASSERT_TRUE(AwaitState(id, RequestState::kPending));
  ASSERT_TRUE(Await([&] { return IsPaused(); }));
  script().label_errors.insert({LabelName("large"), Error(Verdict::kInvalid, "no such flavor")});
  Return(nodes);
  ASSERT_TRUE(AwaitState(id, RequestState::kFailed));
  EXPECT_EQ(Read(id)->declined_by.size(), 1u);
  EXPECT_TRUE(Await([&] { return !IsPaused(); }));
}

// A label's resources may be unknown for a while, as when the cloud is away.
TEST_F(QuotaTest, LabelWhoseNeedIsUnknownIsWaitedFor) {  // D-26
  script().label_errors.insert({LabelName("large"), Error(Verdict::kRetry, "flavors are not known yet")});
  StartLauncher();
  RequestId unknown = Request({"large"});
  RequestId known = Request({"small"});
  ASSERT_TRUE(AwaitState(known, RequestState::kFulfilled));
  time_.Advance(seconds(60));
  EXPECT_EQ(Read(unknown)->state, RequestState::kRequested);
  EXPECT_TRUE(Read(unknown)->declined_by.empty());
  script().label_errors.clear();
  script().capacity_changed();
  EXPECT_TRUE(AwaitState(unknown, RequestState::kFulfilled));
}

// Otherwise nothing of that label would ever be launched at the limit.
TEST_F(QuotaTest, AnUnusedNodeIsDeletedForANewOneOfItsLabel) {  // D-22, BB-10
  AddPool("cloud", "main", {"small"}).max_servers = 1;
  AddNode(NodeState::kReady, [](Node& node) { node.resources = {{"instances", 1}}; });
  StartLauncher();
  RequestId id = Request({"small"}, [](NodeRequest& request) { request.reuse = false; });
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(script().deleted.size(), 1u);
}

TEST_F(QuotaTest, AnUnusedNodeOfAnotherPoolIsDeletedForTheProvidersQuota) {  // D-22
  AddPool("cloud", "main", {"small"});
  AddPool("cloud", "second", {"large"});
  script().available = driver::QuotaInformation::Limit({{"instances", 1}});
  AddNode(NodeState::kReady, [](Node& node) { node.resources = {{"instances", 1}}; });
  StartLauncher();
  RequestId id = Request({"large"});
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(script().deleted.size(), 1u);
}

TEST_F(QuotaTest, NodesOfOtherPoolsStayWhereThePoolItselfIsFull) {  // D-22, launcher.md 10.5
  AddPool("cloud", "main", {"small", "large"}).max_servers = 1;
  AddPool("cloud", "second", {"large"});
  AddNode(NodeState::kReady, [](Node& node) {
    node.pool = PoolName("second");
    node.resources = {{"instances", 1}};
  });
  NodeId own = AddNode(NodeState::kReady, [](Node& node) { node.resources = {{"instances", 1}}; });
  auto second = config_->providers.at(ProviderName("cloud"))->pools.at(PoolName("second"));
  const_cast<driver::PoolConfig&>(*second).max_servers = 0;
  StartLauncher();
  ASSERT_TRUE(AwaitState(Request({"large"}), RequestState::kFulfilled));
  EXPECT_THAT(script().deleted, ::testing::ElementsAre(own));
}

// Two ready nodes: one carries a label that a request of a tenant at its limit waits for.
TEST_F(QuotaTest, NodesThatRequestsWaitForAreDeletedLast) {  // D-22
  AddPool("cloud", "main", {"small", "large", "other"}).max_servers = 2;
  config_->common.tenant_limits["poor"] = {{"instances", 0}};
  NodeId wanted = AddNode(NodeState::kReady, [](Node& node) { node.resources = {{"instances", 1}}; });
  time_.Advance(seconds(1));
  NodeId unwanted = AddNode(NodeState::kReady, [](Node& node) {
    node.type = {LabelName("other")};
    node.resources = {{"instances", 1}};
  });
  StartLauncher();
  RequestId waiting = Request({"small"}, [](NodeRequest& request) { request.tenant_name = "poor"; });
  ASSERT_TRUE(AwaitState(Request({"large"}), RequestState::kFulfilled));
  EXPECT_THAT(script().deleted, ::testing::ElementsAre(unwanted));
  RequestId second = Request({"large"});
  ASSERT_TRUE(AwaitState(second, RequestState::kFulfilled, std::chrono::minutes(6)));
  EXPECT_THAT(script().deleted, ::testing::ElementsAre(unwanted, wanted))
      << "else the second would wait for as long as the tenant is at its limit";
  EXPECT_EQ(Read(waiting)->state, RequestState::kRequested);
}

TEST_F(QuotaTest, NodesAreDeletedAgainWithoutAnyOtherEvent) {  // D-22
  AddPool("cloud", "main", {"small", "large"}).max_servers = 2;
  for (int i = 0; i < 2; ++i)
    AddNode(NodeState::kReady, [](Node& node) { node.resources = {{"instances", 1}}; });
  StartLauncher();
  RequestId first = Request({"large"});
  ASSERT_TRUE(AwaitState(first, RequestState::kFulfilled));
  RequestId second = Request({"large"});
  time_.Advance(seconds(60));
  EXPECT_EQ(Read(second)->state, RequestState::kPending) << "five minutes of hold-off";
  EXPECT_TRUE(AwaitState(second, RequestState::kFulfilled, std::chrono::minutes(6)));
}

// Its machine exists, whatever the configuration says.
TEST_F(QuotaTest, NodesOfAPoolThatIsNotConfiguredCount) {  // launcher.md 4.4, 19.5
  script().available = driver::QuotaInformation::Limit({{"instances", 1}});
  NodeId left = AddNode(NodeState::kReady, [](Node& node) {
    node.pool = PoolName("removed");
    node.resources = {{"instances", 1}};
  });
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kPending));
  time_.Advance(std::chrono::minutes(20));
  EXPECT_EQ(Read(id)->state, RequestState::kPending);
  EXPECT_EQ(Read(left)->state, NodeState::kReady) << "no launcher has to do with its pool";
  ChangeNode(left, [this](Node& node) { node.SetState(NodeState::kDeleting, time_.loop().Now()); });
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
}

TEST_F(QuotaTest, NoNodeIsDeletedForAMinReadyNode) {  // launcher.md 10.4
  AddPool("cloud", "main", {"small", "large"}).max_servers = 1;
  config_->common.labels.at(LabelName("large")).min_ready = 1;
  AddNode(NodeState::kReady, [](Node& node) { node.resources = {{"instances", 1}}; });
  StartLauncher();
  time_.Advance(std::chrono::minutes(20));
  EXPECT_TRUE(script().deleted.empty());
}

TEST_F(QuotaTest, LaunchesOfOneRequestTakeTurnsToo) {  // D-20
  provider_config().max_concurrency = 2;
  script().launch_time = seconds(10);
  StartLauncher();
  RequestId id = Request({"small", "small", "small"});
  time_.Advance(seconds(5));
  EXPECT_EQ(script().launches, 2);
  RequestId min_ready = Request({"small"}, [](NodeRequest& request) {
    request.requestor = std::string(kMinReadyRequestor);
    request.reuse = false;
  });
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_TRUE(AwaitState(min_ready, RequestState::kFulfilled)) << "its turn comes; capacity is not missing";
}

// Each of two requests, of two launchers, holds a node and waits for that of the other.
TEST_F(QuotaTest, TheLaterOfTwoThatHoldNodesGivesWay) {
  AddPool("cloud", "main", {"small"}).max_servers = 2;
  RequestId earlier =
      Request({"small", "small"}, [](NodeRequest& request) { request.state = RequestState::kPending; });
  auto lock = time_.Run(client_store_->requests.TryLock(earlier));
  NodeId held = AddNode(NodeState::kReady, [&](Node& node) {
    node.resources = {{"instances", 1}};
    node.allocated_to = earlier;
  });
  auto node_lock = time_.Run(client_store_->nodes.TryLock(held));
  StartLauncher();
  RequestId later = Request({"small", "small"});
  ASSERT_TRUE(Await([&] { return script().launches == 1; }));
  // The pool of the other launcher, in which the earlier one waits.
  AddForeignPool([](Component& pool) {
    pool.provider_name = ProviderName("cloud");
    pool.is_paused = true;
  });
  EXPECT_TRUE(AwaitState(later, RequestState::kRequested, std::chrono::minutes(3)));
  time_.Run(node_lock->Unlock());
  time_.Run(lock->Unlock());
}

}  // namespace
}  // namespace nodepool::launcher
