// Limits, with the OpenStack driver (driver-openstack.md 21).
#include "launcher/openstack_fixture_for_test.h"

namespace nodepool::launcher {
namespace {

using std::chrono::seconds;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kWithBootVolume =
    "labels: [{name: small, cloud-image: image, flavor-name: m1.small, boot-from-volume: true, volume-size: "
    "10}]";

struct QuotaLimit {
  const char* name;
  const char* pool = "";
  std::map<std::string, double> limits = {};
  std::map<std::string, double> volume_limits = {};
  bool is_on_volume = false;
};

class OpenstackTwoNodesTest : public OpenstackCloudTest, public ::testing::WithParamInterface<QuotaLimit> {};

// O-pool-quota, O-cloud-quota: there is capacity for two nodes, and no third one is tried.
TEST_P(OpenstackTwoNodesTest, TheSecondRequestWaitsForTheNodesOfTheFirst) {
  Provider provider;
  if (GetParam().is_on_volume) provider.pool = kWithBootVolume;
  provider.pool += GetParam().pool;
  for (const auto& [name, limit] : GetParam().limits) imposter_.limits[name] = limit;
  for (const auto& [name, limit] : GetParam().volume_limits) imposter_.volume_limits[name] = limit;
  Add(provider);
  StartLauncher();
  auto nodes = Use({"small", "small"});
  ASSERT_THAT(nodes, SizeIs(2));
  RequestId second = Request({"small", "small"});
  ASSERT_TRUE(AwaitState(second, RequestState::kPending));
  time_.Advance(seconds(30));
  EXPECT_EQ(Read(second)->state, RequestState::kPending);
  EXPECT_TRUE(IsPaused());
  EXPECT_EQ(Attempts(), 2);
  Return(nodes.at(0));
  EXPECT_TRUE(Await([&] { return NodesIn(NodeState::kReady).size() == 1; }));
  EXPECT_EQ(Read(second)->state, RequestState::kPending);
  Return(nodes.at(1));
  ASSERT_TRUE(AwaitState(second, RequestState::kFulfilled));
  EXPECT_EQ(Attempts(), 4) << "nothing was tried in vain";
  EXPECT_EQ(imposter_.servers.size(), 2u);
  EXPECT_FALSE(IsPaused());
}

INSTANTIATE_TEST_SUITE_P(
    Limits, OpenstackTwoNodesTest,
    ::testing::Values(QuotaLimit{"PoolCores", ", max-cores: 2"},
                      QuotaLimit{"PoolServers", ", max-servers: 2"}, QuotaLimit{"PoolRam", ", max-ram: 4096"},
                      QuotaLimit{"PoolVolumes", ", max-volumes: 2", {}, {}, true},
                      QuotaLimit{"PoolVolumeGb", ", max-volume-gb: 20", {}, {}, true},
                      QuotaLimit{"CloudCores", "", {{"maxTotalCores", 2}, {"maxTotalInstances", -1}}},
                      QuotaLimit{"CloudInstances", "", {{"maxTotalInstances", 2}, {"maxTotalRAMSize", -1}}},
                      QuotaLimit{"CloudRam", "", {{"maxTotalRAMSize", 4096}, {"maxTotalCores", -1}}},
                      QuotaLimit{"CloudVolumes", "", {}, {{"maxTotalVolumes", 2}}, true},
                      QuotaLimit{"CloudVolumeGb", "", {}, {{"maxTotalVolumeGigabytes", 20}}, true}),
    [](const auto& info) { return info.param.name; });

struct TenantQuota {
  const char* name;
  const char* limit;
  int min_ready = 0;
};

class OpenstackTenantTest : public OpenstackCloudTest, public ::testing::WithParamInterface<TenantQuota> {};

// O-tenant-quota
TEST_P(OpenstackTenantTest, OthersAreServedBeforeATenantAtItsLimit) {
  top_ = std::string("tenant-resource-limits: [{tenant-name: tenant-1, ") + GetParam().limit + "}]";
  small_ = "min-ready: " + std::to_string(GetParam().min_ready);
  Add({.pool = kWithBootVolume});
  StartLauncher();
  ASSERT_TRUE(Await([&] { return FreeNodes() == GetParam().min_ready; }));
  auto of = [](const char* tenant) {
    return [tenant](NodeRequest& request) { request.tenant_name = tenant; };
  };
  auto nodes = Use({"small", "small"}, of("tenant-1"));
  RequestId second = Request({"small", "small"}, of("tenant-1"));
  RequestId others = Request({"small", "small"}, of("tenant-2"));
  ASSERT_TRUE(AwaitState(others, RequestState::kFulfilled));
  time_.Advance(seconds(30));
  EXPECT_EQ(Read(second)->state, RequestState::kRequested);
  EXPECT_THAT(Read(second)->declined_by, IsEmpty());
  Return(nodes);
  EXPECT_TRUE(AwaitState(second, RequestState::kFulfilled));
}

INSTANTIATE_TEST_SUITE_P(Limits, OpenstackTenantTest,
                         ::testing::Values(TenantQuota{"Cores", "max-cores: 2"},
                                           TenantQuota{"Servers", "max-servers: 2"},
                                           TenantQuota{"Ram", "max-ram: 4096"},
                                           TenantQuota{"Volumes", "max-volumes: 2"},
                                           TenantQuota{"VolumeGb", "max-volume-gb: 20"},
                                           TenantQuota{"ServersWithMinReady", "max-servers: 2", 4}),
                         [](const auto& info) { return info.param.name; });

class OpenstackQuotaTest : public OpenstackCloudTest {
 protected:
  // Another user of the cloud takes all remaining capacity.
  std::string TakeCapacity() {
    imposter_.limits["maxTotalInstances"] = 1;
    return imposter_.AddServer({{"owner", "other"}});
  }
  std::string Ignoring() { return Provider().pool + ", ignore-provider-quota: true"; }
  std::set<NodeId> aborted_;
  Subscription SeeAborted() {
    return WatchNodes([this](const NodeId& id, const Node& record) {
      if (record.state == NodeState::kAborted) aborted_.insert(id);
    });
  }
};

// O-decline-at-quota
TEST_F(OpenstackQuotaTest, AWaitingPoolStillDeclinesWhatItCannotServe) {
  imposter_.limits["maxTotalInstances"] = 1;
  StartLauncher();
  auto nodes = Use({"small"});
  RequestId waiting = Request({"small"});
  ASSERT_TRUE(AwaitState(waiting, RequestState::kPending));
  EXPECT_TRUE(AwaitState(Request({"other"}), RequestState::kFailed));
  EXPECT_TRUE(AwaitState(Request({"small", "small"}), RequestState::kFailed));
  EXPECT_EQ(Read(waiting)->state, RequestState::kPending);
}

// LA-79, O-over-quota: one refusal is enough to know, since the quota is read again.
TEST_F(OpenstackQuotaTest, CapacityUsedByOthersIsLearntFromTheRefusal) {
  StartLauncher();
  auto nodes = Use({"small"});
  time_.Advance(seconds(10));
  auto watch = SeeAborted();
  int reads = QuotaReads();
  imposter_.limits["maxTotalInstances"] = 2;
  std::string others = imposter_.AddServer({{"owner", "other"}});
  RequestId id = Request({"small"});
  ASSERT_TRUE(Await([&] { return !aborted_.empty() && IsPaused(); }));
  time_.Advance(seconds(20));
  EXPECT_EQ(Read(id)->state, RequestState::kPending);
  EXPECT_EQ(Attempts(), 2);
  EXPECT_EQ(QuotaReads(), reads + 1);
  Return(nodes);
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(Attempts(), 3);
  EXPECT_THAT(imposter_.servers, SizeIs(2));
}

// LA-79: the list of servers was read a moment before the others came.
TEST_F(OpenstackQuotaTest, AnAcceptedRequestWaitsForWhatOthersUse) {
  imposter_.limits["maxTotalInstances"] = 1;
  StartLauncher();
  time_.Advance(seconds(2));  // the list is not read again within a second
  std::string others = imposter_.AddServer({{"owner", "other"}});
  RequestId id = Request({"small"});
  ASSERT_TRUE(Await([&] { return Attempts() == 1 && IsPaused(); }));
  time_.Advance(seconds(60));
  EXPECT_EQ(Read(id)->state, RequestState::kPending);
  EXPECT_EQ(Attempts(), 1) << "one refusal is enough to know";
  imposter_.servers.erase(others);
  time_.Advance(seconds(35));
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
}

// LA-79, O-fault-quota
TEST_F(OpenstackQuotaTest, AServerInErrorForQuotaIsARefusal) {
  StartLauncher();
  auto watch = SeeAborted();
  time_.Advance(seconds(10));
  int reads = QuotaReads();
  imposter_.next_server_becomes = "ERROR";
  imposter_.next_server_fault = "VolumeSizeExceedsAvailableQuota: Requested volume exceeds allowed quota";
  imposter_.limits["maxTotalCores"] = 0;
  RequestId id = Request({"small"});
  ASSERT_TRUE(Await([&] { return !aborted_.empty() && QuotaReads() > reads; }));
  EXPECT_EQ(Attempts(), 1) << "it was no attempt that failed";
  EXPECT_TRUE(Await([&] { return imposter_.servers.empty(); }));
  // According to the new quota the cloud can never hold it, so it does not wait.
  EXPECT_TRUE(AwaitState(id, RequestState::kFailed));
}

// O-fault-quota: as long as the limits have capacity, it is tried again after a pause.
TEST_F(OpenstackQuotaTest, ARefusalThatTheLimitsDoNotExplainIsWaitedFor) {
  StartLauncher();
  auto watch = SeeAborted();
  imposter_.next_server_becomes = "ERROR";
  imposter_.next_server_fault = "Quota exceeded for volumes";
  RequestId id = Request({"small"});
  ASSERT_TRUE(Await([&] { return !aborted_.empty() && IsPaused(); }));
  EXPECT_EQ(Read(id)->state, RequestState::kPending);
  imposter_.next_server_becomes = "ACTIVE";
  imposter_.next_server_fault = "";
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_FALSE(aborted_.contains(NodesOf(id).front()));
}

// O-ignore-quota-false
TEST_F(OpenstackQuotaTest, WhatTheCloudCanNeverHoldIsDeclined) {
  imposter_.limits["maxTotalCores"] = 0;
  StartLauncher();
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFailed));
  EXPECT_EQ(Attempts(), 0);
}

// O-ignore-quota-true: the pool's own limits stay.
TEST_F(OpenstackQuotaTest, IgnoringTheQuotaLeavesThePoolsOwnLimits) {
  imposter_.limits["maxTotalCores"] = 0;
  Add({.pool = Ignoring() + ", max-servers: 1"});
  StartLauncher();
  auto nodes = Use({"small"});
  RequestId second = Request({"small"});
  ASSERT_TRUE(AwaitState(second, RequestState::kPending));
  EXPECT_TRUE(Await([&] { return IsPaused(); }));
  EXPECT_TRUE(AwaitState(Request({"small", "small"}), RequestState::kFailed));
  EXPECT_EQ(Attempts(), 1);
  Return(nodes);
  EXPECT_TRUE(AwaitState(second, RequestState::kFulfilled));
}

// O-ignore-quota-cloud-error
TEST_F(OpenstackQuotaTest, IgnoringTheQuotaLeavesTheRefusalToTheCloud) {
  Add({.pool = Ignoring()});
  StartLauncher();
  auto watch = SeeAborted();
  std::string others = TakeCapacity();
  RequestId id = Request({"small"});
  ASSERT_TRUE(Await([&] { return aborted_.size() >= 2; })) << "it is tried again and again";
  EXPECT_EQ(Read(id)->state, RequestState::kPending);
  imposter_.servers.erase(others);
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_FALSE(aborted_.contains(NodesOf(id).front()));
}

// O-paused-order
TEST_F(OpenstackQuotaTest, WaitingRequestsAreServedInTheirOrder) {
  imposter_.limits["maxTotalInstances"] = 1;
  StartLauncher();
  auto nodes = Use({"small"});
  std::vector<RequestId> waiting = {Request({"small"}), Request({"small"}), Request({"small"})};
  time_.Advance(seconds(10));
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    Return(nodes);
    ASSERT_TRUE(AwaitState(waiting[i], RequestState::kFulfilled));
    for (std::size_t later = i + 1; later < waiting.size(); ++later)
      EXPECT_NE(Read(waiting[later])->state, RequestState::kFulfilled);
    nodes = Take(waiting[i]);
  }
  EXPECT_EQ(Attempts(), 4);
}

// O-min-ready-capacity
TEST_F(OpenstackQuotaTest, AMinReadyRequestDoesNotWait) {
  imposter_.limits["maxTotalInstances"] = 1;
  StartLauncher();
  auto nodes = Use({"small"});
  RequestId id =
      Request({"small"}, [](NodeRequest& request) { request.requestor = std::string(kMinReadyRequestor); });
  ASSERT_TRUE(AwaitState(id, RequestState::kFailed));
  EXPECT_THAT(Read(id)->declined_by, SizeIs(1));
}

// O-wedge
TEST_F(OpenstackQuotaTest, AnUnusedNodeIsDeletedForAnotherLabel) {
  imposter_.limits["maxTotalInstances"] = 2;
  small_ = "min-ready: 2";
  Add({.pool = "labels: [{name: small, cloud-image: image, flavor-name: m1.small}, "
               "{name: large, cloud-image: image, flavor-name: m1.large}]"});
  StartLauncher();
  ASSERT_TRUE(Await([&] { return FreeNodes() == 2; }));
  RequestId id = Request({"large"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled, seconds(400)));
  EXPECT_EQ(FreeNodes(), 1);
  EXPECT_EQ(imposter_.servers.size(), 2u);
}

// O-disabled
TEST_F(OpenstackQuotaTest, APoolWithoutServersDeclines) {
  Add({.pool = Provider().pool + ", max-servers: 0"});
  StartLauncher();
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFailed));
  EXPECT_EQ(Attempts(), 0);
}

// O-pause-decline
TEST_F(OpenstackQuotaTest, AWaitingRequestIsDeclinedWhenTheLimitSinksBelowIt) {
  Add({.pool = Provider().pool + ", max-servers: 2"});
  Running& running = StartLauncher();
  auto nodes = Use({"small", "small"});
  RequestId waiting = Request({"small", "small"});
  ASSERT_TRUE(AwaitState(waiting, RequestState::kPending));
  Reconfigure(running, {{.pool = Provider().pool + ", max-servers: 1"}});
  ASSERT_TRUE(AwaitState(waiting, RequestState::kFailed));
  EXPECT_THAT(Read(waiting)->declined_by, SizeIs(1));
}

// O-exc-decline: a node's resources are no longer known.
TEST_F(OpenstackQuotaTest, AWaitingRequestIsDeclinedWhenItsFlavorIsGone) {
  imposter_.limits["maxTotalInstances"] = 1;
  Running& running = StartLauncher();
  auto nodes = Use({"small"});
  RequestId waiting = Request({"small"});
  ASSERT_TRUE(AwaitState(waiting, RequestState::kPending));
  std::erase_if(imposter_.flavors, [](const auto& flavor) { return flavor.second.name == "m1.small"; });
  Reconfigure(running, {{.settings = "boot-timeout: 50"}});
  ASSERT_TRUE(AwaitState(waiting, RequestState::kFailed));
  EXPECT_THAT(Read(waiting)->declined_by, SizeIs(1));
}

}  // namespace
}  // namespace nodepool::launcher
