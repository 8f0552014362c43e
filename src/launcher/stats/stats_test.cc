#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/metrics.h"
#include "base/text.h"
#include "launcher/recorder_for_test.h"
#include "launcher/stats/stats_metrics.h"
#include "launcher/stats/stats_worker.h"

namespace nodepool::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ObserverTest : public ::testing::Test {
 protected:
  Recorder recorder_;
  metrics::Metrics metrics_{&recorder_, nullptr};
  StatsObserver observer_{metrics_};
};

TEST_F(ObserverTest, CallsOfACloudAreCountedByOperation) {
  driver::ApiCall call;
  call.driver = "openstack";
  call.service = "compute";
  call.method = "GET";
  call.name = "servers_detail";
  call.duration = std::chrono::milliseconds(1500);
  observer_.ApiCallEnded(call);
  EXPECT_THAT(recorder_.lines, ElementsAre("openstack.api.compute.GET.servers_detail.attempted:1|c",
                                           "openstack.api.compute.GET.servers_detail.failed:1|c"));
  recorder_.lines.clear();
  call.status = 200;
  observer_.ApiCallEnded(call);
  EXPECT_THAT(recorder_.lines, ElementsAre("openstack.api.compute.GET.servers_detail.attempted:1|c",
                                           "openstack.api.compute.GET.servers_detail.200:1|c",
                                           "openstack.api.compute.GET.servers_detail.200:1500|ms",
                                           "openstack.api.compute.GET.servers_detail.over_1000:1|c"));
}

TEST_F(ObserverTest, RatesCandidatesAndMachinesThatWereTaken) {
  observer_.ApiRateChanged({ProviderName("ec2"), "aws", "ec2 changes", 0.5, 3});
  observer_.CandidateTried({ProviderName("ec2"), "m5.large in subnet-1", false});
  observer_.CandidateTried({ProviderName("ec2"), "m5.large in subnet-2", true});
  observer_.MachineTaken(ProviderName("ec2"), true);
  observer_.ReadyNodeFailed(ProviderName("ec2"), "silent");
  EXPECT_THAT(recorder_.lines,
              ElementsAre("nodepool.provider.ec2.api_rate.ec2_changes:0.5|g",
                          "nodepool.provider.ec2.api_waiting.ec2_changes:3|g",
                          "nodepool.provider.ec2.candidate.m5_large_in_subnet-1.no_capacity:1|c",
                          "nodepool.provider.ec2.candidate.m5_large_in_subnet-2.created:1|c",
                          "nodepool.provider.ec2.taken.in-use:1|c",
                          "nodepool.provider.ec2.recheck.failed.silent:1|c"));
  EXPECT_EQ(observer_.ApiRatesOf(ProviderName("ec2")).at("ec2 changes").waiting, 3u);
}

TEST_F(ObserverTest, TypesOfMachinesThatBecameNodes) {
  driver::LaunchOutcome outcome;
  outcome.provider = ProviderName("ec2");
  outcome.machine_type = "m5.large spot";
  outcome.result = "error.keyscan";
  observer_.LaunchAttemptEnded(outcome);
  outcome.result = "ready";
  observer_.LaunchAttemptEnded(outcome);
  EXPECT_EQ(
      std::ranges::count(recorder_.lines, "nodepool.provider.ec2.machine_type.m5_large_spot.launched:1|c"),
      1);
}

TEST_F(ObserverTest, EveryLaunchAttemptIsATimingAndACounterForEachKey) {
  // launcher.27.2, LA-85, O-ignore-quota-cloud-error
  driver::LaunchOutcome outcome;
  outcome.provider = ProviderName("cloud");
  outcome.result = "error.quota";
  outcome.duration = std::chrono::microseconds(1'234'900);
  observer_.LaunchAttemptEnded(outcome);
  EXPECT_THAT(recorder_.lines,
              ElementsAre("nodepool.launch.provider.cloud.error.quota:1234|ms",
                          "nodepool.launch.provider.cloud.error.quota:1|c",
                          "nodepool.launch.error.quota:1234|ms", "nodepool.launch.error.quota:1|c"));
  recorder_.lines.clear();
  outcome.result = "ready";
  outcome.az = "az.1";
  outcome.requestor = "NodePool:min-ready";
  observer_.LaunchAttemptEnded(outcome);
  EXPECT_THAT(recorder_.lines,
              ElementsAre("nodepool.launch.provider.cloud.ready:1234|ms",
                          "nodepool.launch.provider.cloud.ready:1|c", "nodepool.launch.ready:1234|ms",
                          "nodepool.launch.ready:1|c", "nodepool.launch.provider.cloud.az.1.ready:1234|ms",
                          "nodepool.launch.provider.cloud.az.1.ready:1|c",
                          "nodepool.launch.requestor.NodePool_min-ready.ready:1234|ms",
                          "nodepool.launch.requestor.NodePool_min-ready.ready:1|c"));
}

TEST_F(ObserverTest, HostsAreUpOrNotAndHaveWhatRunsThere) {  // LV-31
  observer_.HostMeasured({ProviderName("here"), "rack1", true, 2, 6, 4096});
  EXPECT_THAT(recorder_.lines, ElementsAre("nodepool.provider.here.host.rack1.up:1|g",
                                           "nodepool.provider.here.host.rack1.instances:2|g",
                                           "nodepool.provider.here.host.rack1.cores:6|g",
                                           "nodepool.provider.here.host.rack1.ram:4096|g"));
}

// driver-libvirt.md 20
TEST_F(ObserverTest, TheGaugesOfAHostEndWithItsLastUser) {
  const ProviderName provider("here");
  for (int generation = 0; generation < 2; ++generation) observer_.HostAdded(provider, "rack1");
  observer_.HostRemoved(provider, "rack1");
  EXPECT_THAT(recorder_.lines, IsEmpty()) << "the provider's successor uses it";
  observer_.HostRemoved(provider, "rack1");
  EXPECT_THAT(recorder_.lines, ElementsAre("nodepool.provider.here.host.rack1.up:0|g",
                                           "nodepool.provider.here.host.rack1.instances:0|g",
                                           "nodepool.provider.here.host.rack1.cores:0|g",
                                           "nodepool.provider.here.host.rack1.ram:0|g"));
}

// driver-libvirt.md 20
TEST_F(ObserverTest, CallsOfHostsAreCountedAndTimed) {
  observer_.HostCallEnded({ProviderName("here"), "rack1", "start", true, milliseconds(250)});
  observer_.HostCallEnded({ProviderName("here"), "rack1", "start", false, std::chrono::seconds(30)});
  EXPECT_THAT(recorder_.lines, ElementsAre("nodepool.provider.here.host.rack1.call.start.ok:1|c",
                                           "nodepool.provider.here.host.rack1.call.start:250|ms",
                                           "nodepool.provider.here.host.rack1.call.start.failed:1|c",
                                           "nodepool.provider.here.host.rack1.call.start:30000|ms"));
}

TEST_F(ObserverTest, LeaksInCapitalsAreSentUnderBothSpellings) {  // launcher.27.6, D-29, LA-54
  observer_.LeakedResourcesDeleted(ProviderName("cloud"), "ports", 3);
  observer_.LeakedResourcesDeleted(ProviderName("azure"), "INSTANCEs", 1);
  EXPECT_THAT(recorder_.lines, ElementsAre("nodepool.provider.cloud.leaked.ports:3|c",
                                           "nodepool.provider.azure.leaked.instances:1|c",
                                           "nodepool.provider.azure.leaked.INSTANCEs:1|c"));
}

class NodeCountsTest : public ::testing::Test {
 protected:
  void AddPool(std::string provider, std::optional<PoolName> pool, std::vector<LabelName> labels) {
    auto component = std::make_unique<Component>();
    component->kind = ComponentKind::kPool;
    component->provider_name = ProviderName(std::move(provider));
    component->name = std::move(pool);
    component->supported_labels = std::move(labels);
    components_.push_back(std::move(component));
  }
  Recorder Report() {
    std::vector<const Component*> pools;
    for (const auto& component : components_) pools.push_back(component.get());
    Recorder recorder;
    counts_.Report(recorder, pools);
    return recorder;
  }

  NodeCounts counts_;
  std::vector<std::unique_ptr<Component>> components_;
};

TEST_F(NodeCountsTest, EveryStateWithZeros) {  // launcher.27.3, LA-01
  Node node = MakeNode(NodeState::kReady, "cloud", {LabelName("small"), LabelName("tiny")});
  counts_.Change(nullptr, &node);
  std::vector<std::string> expected;
  for (std::string prefix : {"nodepool.nodes", "nodepool.provider.cloud.nodes", "nodepool.label.small.nodes",
                             "nodepool.label.tiny.nodes"}) {
    for (std::string state : {"building", "testing", "ready", "in-use", "used", "hold", "deleting", "failed",
                              "init", "aborted", "deleted"}) {
      expected.push_back(fmt::format("{}.{}:{}|g", prefix, state, state == "ready" ? 1 : 0));
    }
  }
  EXPECT_EQ(Report().lines, expected);
}

TEST_F(NodeCountsTest, ChangesMoveNodesAndNothingIsLeftBehind) {
  Node ready = MakeNode(NodeState::kReady, "cloud", {LabelName("small")});
  Node used = MakeNode(NodeState::kUsed, "cloud", {LabelName("small")});
  Node stateless = MakeNode(std::nullopt, "cloud", {LabelName("small")});
  counts_.Change(nullptr, &ready);
  counts_.Change(nullptr, &ready);
  counts_.Change(nullptr, &stateless);
  counts_.Change(&ready, &used);
  EXPECT_EQ(Report().Last("nodepool.nodes.ready"), "1|g");
  EXPECT_EQ(Report().Last("nodepool.nodes.used"), "1|g");
  EXPECT_EQ(Report().Last("nodepool.label.small.nodes.used"), "1|g");
  counts_.Change(&ready, nullptr);
  counts_.Change(&used, nullptr);
  EXPECT_THAT(Report().With("cloud"), IsEmpty());
  EXPECT_THAT(Report().With("small"), IsEmpty());
  EXPECT_EQ(Report().Last("nodepool.nodes.used"), "0|g");
}

TEST_F(NodeCountsTest, WhatTheMachinesCost) {
  Node priced = MakeNode(NodeState::kInUse, "cloud", {LabelName("small"), LabelName("tiny")});
  priced.hourly_price = 0.1;
  Node other = MakeNode(NodeState::kReady, "cloud", {LabelName("small")});
  other.hourly_price = 0.0416;
  counts_.Change(nullptr, &priced);
  counts_.Change(nullptr, &priced);
  counts_.Change(nullptr, &other);
  EXPECT_EQ(Report().Last("nodepool.provider.cloud.label.small.hourly_cost"), "0.2416|g");
  EXPECT_THAT(Report().With("label.tiny.hourly_cost"), IsEmpty()) << "it counts once";
  for (const Node* node : {&priced, &priced, &other}) counts_.Change(node, nullptr);
  EXPECT_THAT(Report().With("hourly_cost"), IsEmpty()) << "nothing is left over";
}

TEST_F(NodeCountsTest, RegisteredProvidersAndLabelsAreReportedAsZero) {  // launcher.27.3
  AddPool("cloud", PoolName("main"), {LabelName("small")});
  EXPECT_EQ(Report().Last("nodepool.provider.cloud.nodes.ready"), "0|g");
  EXPECT_EQ(Report().Last("nodepool.label.small.nodes.aborted"), "0|g");
}

TEST_F(NodeCountsTest, AddressableRequestsInAnyState) {  // launcher.27.3, LA-93
  AddPool("cloud", PoolName("main"), {LabelName("small"), LabelName("large")});
  AddPool("cloud", PoolName("main"), {LabelName("other")});  // of another launcher, configured otherwise
  AddPool("cloud", PoolName("tiny"), {LabelName("small")});
  AddPool("old", std::nullopt, {LabelName("small")});
  NodeRequest small, both, mixed, none;
  small.node_types = {LabelName("small")};
  small.state = RequestState::kFulfilled;
  both.node_types = {LabelName("small"), LabelName("large"), LabelName("small")};
  mixed.node_types = {LabelName("small"), LabelName("other")};
  for (const NodeRequest* request : {&small, &small, &both, &mixed, &none}) counts_.Change(nullptr, request);
  EXPECT_THAT(Report().With("addressable"),
              ElementsAre("nodepool.provider.cloud.pool.main.addressable_requests:4|g",
                          "nodepool.provider.cloud.pool.tiny.addressable_requests:3|g"));
  counts_.Change(&small, nullptr);
  counts_.Change(&both, &small);
  EXPECT_EQ(Report().Last("nodepool.provider.cloud.pool.tiny.addressable_requests"), "3|g");
}

TEST(StatsConfigTest, LimitsOfProvidersAndTenants) {  // launcher.27.4, LA-08..13, BB-33
  auto provider = [](std::vector<double> pools) {
    auto config = std::make_shared<driver::ProviderConfig>();
    for (double max_servers : pools) {
      auto pool = std::make_shared<driver::PoolConfig>();
      pool->max_servers = max_servers;
      config->pools[PoolName(fmt::format("{}", config->pools.size()))] = pool;
    }
    return config;
  };
  driver::LoadedConfig config;
  config.providers[ProviderName("a")] = provider({5, 0, 7});
  config.providers[ProviderName("b")] = provider({5, driver::kUnlimited});
  config.providers[ProviderName("c")] = provider({-1});
  config.common.tenant_limits["tenant.1"] = {{"cores", 10}, {"volume:gb", 3}};
  Recorder recorder;
  ReportConfig(config, recorder);
  EXPECT_THAT(
      recorder.lines,
      ElementsAre("nodepool.provider.a.max_servers:12|g", "nodepool.provider.b.max_servers:inf|g",
                  "nodepool.provider.c.max_servers:-1|g", "nodepool.tenant_limits.tenant_1.cores:10|g",
                  "nodepool.tenant_limits.tenant_1.instances:inf|g",
                  "nodepool.tenant_limits.tenant_1.ram:inf|g",
                  "nodepool.tenant_limits.tenant_1.volume_gb:3|g"));
}

TEST(StatsReferenceTest, NamesInPrometheusAreUnique) {
  std::set<std::string_view> names;
  for (const metrics::Metric* metric : stats::All()) {
    if (metric->name.empty()) continue;
    EXPECT_TRUE(names.insert(metric->name).second) << metric->name;
  }
}

}  // namespace
}  // namespace nodepool::launcher
