// Limits of pools, clouds and tenants, with the simulated cloud: machines of 4 cores
// and 8192 MiB.
#include "launcher/cloud_fixture_for_test.h"

namespace nodepool::launcher {
namespace {

using std::chrono::seconds;

constexpr const char* kOnVolume = "boot-from-volume: true, volume-size: 10";

struct Limit {
  const char* name;
  const char* pool = "";
  const char* simulation = "";
  const char* label = "";
};

class TwoNodesTest : public CloudTest, public ::testing::WithParamInterface<Limit> {};

TEST_P(TwoNodesTest, SecondRequestWaitsForTheNodesOfTheFirst) {  // LA-03..07, LA-14..18
  AddCloud({.pool = GetParam().pool, .label = GetParam().label, .simulation = GetParam().simulation});
  StartLauncher();
  RequestId first = Request({"small", "small"});
  ASSERT_TRUE(AwaitState(first, RequestState::kFulfilled));
  auto nodes = Take(first);
  RequestId second = Request({"small", "small"});
  ASSERT_TRUE(AwaitState(second, RequestState::kPending));
  time_.Advance(seconds(30));
  EXPECT_EQ(Read(second)->state, RequestState::kPending);
  EXPECT_TRUE(IsPaused());
  EXPECT_EQ(cloud().servers().size(), 2u);
  Return(nodes.at(0));
  auto has_node = [&] {
    for (const NodeId& id : NodesIn(NodeState::kReady)) {
      if (Read(id)->allocated_to == second) return true;
    }
    return false;
  };
  EXPECT_TRUE(Await(has_node));
  EXPECT_EQ(Read(second)->state, RequestState::kPending);
  Return(nodes.at(1));
  ASSERT_TRUE(AwaitState(second, RequestState::kFulfilled));
  EXPECT_EQ(Read(second)->nodes.size(), 2u);
  EXPECT_FALSE(IsPaused());
  EXPECT_EQ(cloud().create_attempts(), 4u) << "nothing was tried in vain";
  EXPECT_THAT(Children("/nodepool/requests-lock"), ::testing::Not(::testing::Contains(first.value)));
}

INSTANTIATE_TEST_SUITE_P(
    Limits, TwoNodesTest,
    ::testing::Values(Limit{"PoolCores", "max-cores: 8"}, Limit{"PoolServers", "max-servers: 2"},
                      Limit{"PoolRam", "max-ram: 16384"},
                      Limit{"PoolVolumes", "max-volumes: 2", "", kOnVolume},
                      Limit{"PoolVolumeGb", "max-volume-gb: 20", "", kOnVolume},
                      Limit{"CloudCores", "", "limits: {cores: 8, instances: -1, ram: -1}"},
                      Limit{"CloudInstances", "", "limits: {cores: -1, instances: 2, ram: -1}"},
                      Limit{"CloudRam", "", "limits: {cores: -1, instances: -1, ram: 16384}"},
                      Limit{"CloudVolumes", "", "limits: {volumes: 2}", kOnVolume},
                      Limit{"CloudVolumeGb", "", "limits: {volume-gb: 20}", kOnVolume}),
    [](const auto& info) { return info.param.name; });

struct TenantLimit {
  const char* name;
  const char* limit;
  int min_ready = 0;
};

class TenantTest : public CloudTest, public ::testing::WithParamInterface<TenantLimit> {};

TEST_P(TenantTest, RequestsBeyondTheTenantsShareWait) {  // LA-08..13
  top_ = std::string("tenant-resource-limits: [{tenant-name: tenant-1, ") + GetParam().limit + "}]";
  AddCloud({.label = kOnVolume});
  SetLabel("small", "min-ready: " + std::to_string(GetParam().min_ready));
  StartLauncher();
  ASSERT_TRUE(Await([&] { return FreeNodes() == GetParam().min_ready; }));
  auto of_tenant = [](const char* tenant) {
    return [tenant](NodeRequest& request) { request.tenant_name = tenant; };
  };
  RequestId a = Request({"small", "small"}, of_tenant("tenant-1"));
  ASSERT_TRUE(AwaitState(a, RequestState::kFulfilled));
  auto nodes = Take(a);
  RequestId b = Request({"small", "small"}, of_tenant("tenant-1"));
  RequestId c = Request({"small", "small", "small", "small"}, of_tenant("tenant-2"));
  ASSERT_TRUE(AwaitState(c, RequestState::kFulfilled));
  time_.Advance(seconds(30));
  EXPECT_EQ(Read(b)->state, RequestState::kRequested);
  EXPECT_TRUE(Read(b)->nodes.empty());
  EXPECT_TRUE(Read(b)->declined_by.empty());
  Return(nodes);
  EXPECT_TRUE(AwaitState(b, RequestState::kFulfilled));
}

INSTANTIATE_TEST_SUITE_P(Limits, TenantTest,
                         ::testing::Values(TenantLimit{"Cores", "max-cores: 8"},
                                           TenantLimit{"Servers", "max-servers: 2"},
                                           TenantLimit{"Ram", "max-ram: 16384"},
                                           TenantLimit{"Volumes", "max-volumes: 2"},
                                           TenantLimit{"VolumeGb", "max-volume-gb: 20"},
                                           TenantLimit{"ServersWithMinReady", "max-servers: 2", 8}),
                         [](const auto& info) { return info.param.name; });

class CloudQuotaTest : public CloudTest {};

TEST_F(CloudQuotaTest, PausedPoolStillDeclinesWhatItCannotServe) {  // LA-19
  AddCloud({.simulation = "limits: {instances: 1}"});
  StartLauncher();
  auto nodes = Use({"small"});
  RequestId waiting = Request({"small"});
  ASSERT_TRUE(AwaitState(waiting, RequestState::kPending));
  RequestId unknown = Request({"no such label"});
  EXPECT_TRUE(AwaitState(unknown, RequestState::kFailed));
  EXPECT_EQ(Read(waiting)->state, RequestState::kPending);
}

// LA-20, LA-79: the refusal makes the quota be read again.
TEST_F(CloudQuotaTest, LimitThatWasLoweredSilentlyIsLearntFromTheRefusal) {
  AddCloud({.simulation = "limits: {instances: 2}"});
  StartLauncher();
  auto nodes = Use({"small"});
  time_.Advance(seconds(2));  // the quota is not read twice in a second
  Change([](drivers::FakeSimulation& cloud) { cloud.limits.instances = 1; });
  RequestId id = Request({"small"});
  ASSERT_TRUE(Await([&] { return IsPaused(); }));
  time_.Advance(seconds(30));
  EXPECT_EQ(Read(id)->state, RequestState::kPending);
  EXPECT_EQ(cloud().create_attempts(), 2u) << "one refusal is enough to know";
  Return(nodes);
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(cloud().servers().size(), 1u);
  EXPECT_EQ(cloud().create_attempts(), 3u);
}

TEST_F(CloudQuotaTest, MinReadyRequestDoesNotWait) {  // LA-24
  AddCloud({.pool = "max-servers: 1"});
  StartLauncher();
  auto nodes = Use({"small"});
  RequestId id =
      Request({"small"}, [](NodeRequest& request) { request.requestor = std::string(kMinReadyRequestor); });
  ASSERT_TRUE(AwaitState(id, RequestState::kFailed));
  EXPECT_EQ(Read(id)->declined_by.size(), 1u);
}

TEST_F(CloudQuotaTest, WhatTheCloudCanNeverHoldIsDeclined) {  // LA-83
  AddCloud({.simulation = "limits: {cores: 0}"});
  StartLauncher();
  RequestId id = Request({"small"});
  EXPECT_TRUE(AwaitState(id, RequestState::kFailed));
}

TEST_F(CloudQuotaTest, VolumeSpaceIsPartOfTheSizeCheck) {  // D-83
  AddCloud({.pool = "max-volume-gb: 20", .label = kOnVolume});
  StartLauncher();
  RequestId id = Request({"small", "small", "small"});
  EXPECT_TRUE(AwaitState(id, RequestState::kFailed));
}

TEST_F(CloudQuotaTest, IgnoringTheQuotaLeavesThePoolsOwnLimits) {  // LA-84
  AddCloud({.pool = "ignore-provider-quota: true, max-servers: 1",
            .simulation = "limits: {cores: 0}, quota-error: false"});
  StartLauncher();
  auto nodes = Use({"small"});
  RequestId second = Request({"small"});
  ASSERT_TRUE(AwaitState(second, RequestState::kPending));
  EXPECT_TRUE(Await([&] { return IsPaused(); }));
  RequestId third = Request({"small", "small"});
  EXPECT_TRUE(AwaitState(third, RequestState::kFailed));
  Return(nodes);
  EXPECT_TRUE(AwaitState(second, RequestState::kFulfilled));
}

TEST_F(CloudQuotaTest, RefusedLaunchIsAbortedAndTriedWithANewNode) {  // LA-85, BB-38
  AddCloud({.pool = "ignore-provider-quota: true", .simulation = "limits: {instances: 0}"});
  StartLauncher();
  RequestId id = Request({"small"});
  std::set<NodeId> aborted;
  Subscription registration = WatchNodes([&](const NodeId& node, const Node& record) {
    if (record.state == NodeState::kAborted) aborted.insert(node);
  });
  time_.Advance(seconds(60));
  EXPECT_GE(aborted.size(), 2u);
  EXPECT_EQ(Read(id)->state, RequestState::kPending);
  EXPECT_TRUE(IsPaused());
  Change([](drivers::FakeSimulation& cloud) { cloud.limits.instances = 1; });
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_FALSE(aborted.contains(Read(id)->nodes[0]));
  EXPECT_TRUE(Await([&] { return Nodes().size() == 1; }));
}

// The pauses after a refusal are random: no draw may change the order.
class RefusedTest : public CloudQuotaTest, public ::testing::WithParamInterface<int> {};

TEST_P(RefusedTest, RequestsThatTheCloudRefusedKeepTheirOrder) {  // LA-86
  random_ = SeededRandom(static_cast<std::uint64_t>(GetParam()));
  AddCloud({.pool = "ignore-provider-quota: true", .simulation = "limits: {instances: 0}"});
  RequestId first = Request({"small"});
  RequestId second = Request({"small"});
  StartLauncher();
  ASSERT_TRUE(AwaitState(first, RequestState::kPending));
  time_.Advance(seconds(20));
  Change([](drivers::FakeSimulation& cloud) { cloud.limits.instances = 1; });
  ASSERT_TRUE(AwaitState(first, RequestState::kFulfilled));
  EXPECT_NE(Read(second)->state, RequestState::kFulfilled);
  auto nodes = Take(first);
  time_.Advance(seconds(30));
  EXPECT_NE(Read(second)->state, RequestState::kFulfilled);
  Return(nodes);
  EXPECT_TRUE(AwaitState(second, RequestState::kFulfilled));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RefusedTest, ::testing::Range(1, 9));

TEST_F(CloudQuotaTest, APoolStaysPausedWhileARefusedRequestTriesAgain) {  // D-33
  AddCloud({.pool = "ignore-provider-quota: true", .simulation = "limits: {instances: 0}"});
  Launcher& launcher = *StartLauncher().launcher;
  Request({"small"});
  ASSERT_TRUE(Await([&] { return IsPaused(); }));
  int tries = 0;
  Subscription registration = WatchNodes([&](const NodeId&, const Node& record) {
    if (record.state != NodeState::kBuilding) return;
    ++tries;
    EXPECT_TRUE(launcher.Providers().at(0).pools.at(0).is_waiting);
  });
  EXPECT_TRUE(Await([&] { return tries >= 3; }));
}

TEST_F(CloudQuotaTest, ARefusedNodeThatNoCacheHasShownDoesNotCount) {  // LA-85
  AddCloud({.pool = "ignore-provider-quota: true, max-servers: 1", .simulation = "limits: {instances: 0}"});
  Running& launcher = StartLauncher();
  std::vector<NodeId> aborted;
  Subscription registration = WatchNodes([&](const NodeId& node, const Node& record) {
    if (record.state == NodeState::kAborted) aborted.push_back(node);
  });
  launcher.recorder->HideOwnWrites();
  launcher.recorder->FailWhen([](const testing::FaultyZk::Call& call) {
    bool is_node = call.name == "Get" && call.path.starts_with("/nodepool/nodes/");
    return is_node ? testing::FaultyZk::Fault::kBefore : testing::FaultyZk::Fault::kNone;
  });
  RequestId id = Request({"small"});
  ASSERT_TRUE(Await([&] { return !aborted.empty() && !IsLocked(aborted.front()); }));
  Change([](drivers::FakeSimulation& cloud) { cloud.limits.instances = 1; });
  time_.Run(zk::DeleteRecursive(*client_, "/nodepool/nodes/" + aborted.front().value));
  launcher.recorder->FailNever();
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
}

TEST_F(CloudQuotaTest, AFailedNodeThatNoCacheHasShownCounts) {  // LA-04
  AddCloud({.pool = "max-servers: 1", .simulation = "create-failure-rate: 1"});
  Running& launcher = StartLauncher();
  std::set<RequestId> may_accept;
  launcher.recorder->HideOwnWrites();
  launcher.recorder->FailWhen([&](const testing::FaultyZk::Call& call) {
    bool is_node = call.name == "Get" && call.path.starts_with("/nodepool/nodes/");
    auto is_of = [&](const RequestId& id) { return call.path.find(id.value) != call.path.npos; };
    bool is_early = call.name == "Multi" && call.path.starts_with("/nodepool/requests-lock/") &&
                    std::ranges::none_of(may_accept, is_of);
    return is_node || is_early ? testing::FaultyZk::Fault::kBefore : testing::FaultyZk::Fault::kNone;
  });
  RequestId first = Request({"small"});
  RequestId second = Request({"small"});
  time_.Advance(seconds(1));
  may_accept.insert(first);
  ASSERT_TRUE(AwaitState(first, RequestState::kFailed));
  may_accept.insert(second);
  ASSERT_TRUE(AwaitState(second, RequestState::kPending));
  time_.Advance(seconds(10));
  EXPECT_THAT(NodesIn(NodeState::kFailed), ::testing::SizeIs(1));
  EXPECT_THAT(Nodes(), ::testing::SizeIs(1)) << "the second launch waits";
  launcher.recorder->FailNever();
  EXPECT_TRUE(AwaitState(second, RequestState::kFailed));
  EXPECT_TRUE(Await([&] { return Nodes().empty(); }));
}

TEST_F(CloudQuotaTest, AFailedNodeThatIsGoneBeforeAnyCacheHasShownItFreesItsPlace) {  // LA-04
  AddCloud({.provider = "launch-retries: 1", .pool = "max-servers: 1"});
  Running& launcher = StartLauncher();
  cloud().FailNextCreates(1);
  launcher.recorder->HideOwnWrites();
  launcher.recorder->FailWhen([](const testing::FaultyZk::Call& call) {
    bool is_node = call.name == "Get" && call.path.starts_with("/nodepool/nodes/");
    return is_node ? testing::FaultyZk::Fault::kBefore : testing::FaultyZk::Fault::kNone;
  });
  ASSERT_TRUE(AwaitState(Request({"small"}), RequestState::kFailed));
  time_.Run(zk::DeleteRecursive(*client_, "/nodepool/nodes/" + Nodes().at(0).value));
  launcher.recorder->FailNever();
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFulfilled));
}

TEST_F(CloudQuotaTest, WhatOthersTakeWhileReadyNodesAreAssignedIsNotTakenAgain) {  // D-33
  AddCloud({.simulation = "limits: {instances: 2}"});
  SetLabel("small", "min-ready: 1");
  StartLauncher();
  ASSERT_TRUE(Await([&] { return FreeNodes() == 1; }));
  NodeId free = NodesIn(NodeState::kReady).front();
  zk_.SetLatency(seconds(1));
  RequestId id = Request({"small", "small"});
  ASSERT_TRUE(Await([&] { return IsLocked(free); }));
  AddNode(NodeState::kHold);
  zk_.SetLatency(seconds(0));
  ASSERT_TRUE(Await([&] { return IsPaused(); }));
  EXPECT_EQ(Nodes().size(), 2u) << "the other one took the last place";
  EXPECT_EQ(Read(id)->state, RequestState::kPending);
}

// A full cloud with one pool that waits for it and one that ignores the quota and was refused. Two launchers
// serve both.
class FullCloudTest : public CloudQuotaTest {
 protected:
  void SetUp() override {
    CloudQuotaTest::SetUp();
    AddCloud({.simulation = "limits: {instances: 1}",
              .more_pools = ", {name: ignoring, ignore-provider-quota: true, "
                            "labels: [{name: other, cloud-image: image, min-ram: 8192}]}"});
    SetLabel("other", "");
    StartLauncher();
    StartLauncher("np02");
    nodes_ = Use({"other"});
    waiting_ = Request({"small"});
    ASSERT_TRUE(AwaitState(waiting_, RequestState::kPending));
    bool is_refused = false;
    Subscription registration = WatchNodes([&](const NodeId&, const Node& record) {
      is_refused = is_refused || record.state == NodeState::kAborted;
    });
    RequestId refused = Request({"other"});
    ASSERT_TRUE(Await([&] { return is_refused; })) << "only a launch shows how much capacity there is";
    DeleteRequest(refused);
    later_ = Request({"other"});
    time_.Advance(seconds(30));
    ASSERT_EQ(Read(later_)->state, RequestState::kRequested);
  }

  std::vector<store::LockedNode> nodes_;
  RequestId waiting_;
  RequestId later_;
};

TEST_F(FullCloudTest, AlsoWithIgnoredQuotaCapacityIsHandedOutInOrder) {  // D-33
  Return(nodes_);
  ASSERT_TRUE(AwaitState(waiting_, RequestState::kFulfilled));
  auto nodes = Take(waiting_);
  EXPECT_NE(Read(later_)->state, RequestState::kFulfilled);
  Return(nodes);
  EXPECT_TRUE(AwaitState(later_, RequestState::kFulfilled));
}

TEST_F(FullCloudTest, ARefusalExpires) {  // D-33
  time_.Advance(std::chrono::minutes(5));
  EXPECT_TRUE(AwaitState(later_, RequestState::kPending)) << "it tries again";
  EXPECT_EQ(Read(waiting_)->state, RequestState::kPending);
}

// A pool in each of two providers: one loses its capacity, the other serves.
TEST_F(CloudQuotaTest, WaitingRequestWhoseLaunchFailsGoesToTheOtherProvider) {  // LA-73
  AddCloud({.name = "a", .provider = "breaker: false", .pool = "max-servers: 1"});
  AddCloud({.name = "b", .pool = "max-servers: 1"});
  StartLauncher();
  std::map<ProviderName, std::vector<store::LockedNode>> nodes;
  for (int i = 0; i < 2; ++i) {
    auto taken = Use({"small"});
    ASSERT_EQ(taken.size(), 1u);
    ProviderName provider = taken[0].record().provider;
    nodes[provider] = std::move(taken);
  }
  ASSERT_EQ(nodes.size(), 2u);
  RequestId first = Request({"small"});
  ASSERT_TRUE(AwaitState(first, RequestState::kPending));
  RequestId second = Request({"small"});
  ASSERT_TRUE(AwaitState(second, RequestState::kPending));
  // Find out which request waits where: the one that is served when b has capacity waits there.
  Return(nodes[ProviderName("b")]);
  ASSERT_TRUE(Await([&] {
    return Read(first)->state == RequestState::kFulfilled || Read(second)->state == RequestState::kFulfilled;
  }));
  RequestId served = Read(first)->state == RequestState::kFulfilled ? first : second;
  RequestId left = served == first ? second : first;
  auto of_b = Take(served);
  Return(of_b);
  ASSERT_TRUE(Await([&] { return cloud("b").servers().empty(); }));
  cloud("a").FailNextCreates(100);
  Return(nodes[ProviderName("a")]);
  ASSERT_TRUE(AwaitState(left, RequestState::kFulfilled));
  ASSERT_EQ(Read(left)->declined_by.size(), 1u);
  EXPECT_THAT(Read(left)->declined_by[0].value, ::testing::HasSubstr("a-main"));
  EXPECT_EQ(NodeOf(left).provider, ProviderName("b"));
}

}  // namespace
}  // namespace nodepool::launcher
