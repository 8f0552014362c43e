#include <gmock/gmock.h>

#include "async/task_group.h"
#include "driver/cloud/cloud_provider_fixture_for_test.h"
#include "driver/cloud/launch/machine_start.h"
#include "driver/cloud/provider_parts.h"

namespace nodepool::driver::cloud {

namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CloudProviderTest : public ProviderTest {
 protected:
  static Instance Foreign(double instances) {
    Instance machine;
    machine.external_id = "foreign";
    machine.quota = QuotaInformation::Amount({{"instances", instances}});
    return machine;
  }
  double AvailableInstances() { return provider->AvailableQuota().Get("instances"); }

  // A node's record and its resource in the cloud.
  NodeId MakeNode(boost::json::value external_id) {
    Node record;
    record.SetState(NodeState::kReady, time.loop().Now());
    record.provider = config->name;
    record.pool = PoolName("main");
    record.type = {LabelName("small")};
    record.external_id = external_id;
    NodeId id = time.Run(store.nodes.Create(record));
    time.RunUntil([&] { return nodes.Find(id) != nullptr; });
    return id;
  }
  static Resource Owned(std::string type, std::string id, std::map<std::string, std::string> metadata) {
    metadata.emplace("nodepool_provider_name", "cloud");
    return {std::move(type), std::move(id), std::move(metadata)};
  }
  void Clean() { time.Run(provider->CleanupLeakedResources()); }
};

// launcher.md 19.2
TEST_F(CloudProviderTest, QuotaIsTheLimitMinusForeignUse) {
  prepare_cloud = [](ScriptedAdapter& adapter) { adapter.machines["foreign"] = Foreign(3); };
  StartProvider();
  EXPECT_EQ(AvailableInstances(), 7);
  EXPECT_EQ(provider->AvailableQuota().Get("cores"), kUnlimited);
  time.Run(LaunchNode());
  provider->InvalidateQuota();
  time.Advance(seconds(5));
  EXPECT_EQ(AvailableInstances(), 7) << "a machine of a known node is not foreign";
}

TEST_F(CloudProviderTest, LeakedMachineCountsAsForeign) {
  prepare_cloud = [](ScriptedAdapter& adapter) {
    Instance leaked = Foreign(1);
    leaked.metadata = {{"nodepool_provider_name", "cloud"}, {"nodepool_node_id", "0000000099"}};
    adapter.machines["leaked"] = leaked;
  };
  StartProvider();
  EXPECT_EQ(AvailableInstances(), 9);
}

// Else a request that needs all of the limit would be declined until the next reading.
TEST_F(CloudProviderTest, AMachineThatIsListedShortlyAfterItsDeletionCountsAsNobodys) {
  StartProvider();
  Node record;
  record.provider = config->name;
  NodeId id = time.Run(store.nodes.Create(record));
  time.RunUntil([&] { return nodes.Find(id) != nullptr; });
  Instance machine = Foreign(1);
  machine.metadata = {{"nodepool_provider_name", "cloud"}, {"nodepool_node_id", id.value}};
  cloud->machines["deleted"] = machine;
  time.Run(zk::DeleteRecursive(*client, "/nodepool/nodes/" + id.value));
  time.RunUntil([&] { return nodes.Find(id) == nullptr; });
  provider->InvalidateQuota();
  time.Advance(seconds(2));
  EXPECT_EQ(AvailableInstances(), 10);
  time.Advance(minutes(1));
  provider->InvalidateQuota();
  time.Advance(seconds(2));
  EXPECT_EQ(AvailableInstances(), 9) << "it is leaked";
}

TEST_F(CloudProviderTest, QuotaIsReadAgainAfter300Seconds) {
  StartProvider();
  EXPECT_EQ(cloud->quota_asked, 1);
  int changes = capacity_changes;
  time.Advance(seconds(295));
  EXPECT_EQ(cloud->quota_asked, 1);
  cloud->limits["instances"] = 20;
  time.Advance(seconds(10));
  EXPECT_EQ(cloud->quota_asked, 2);
  EXPECT_EQ(AvailableInstances(), 20);
  EXPECT_EQ(capacity_changes, changes + 1);
  time.Advance(seconds(302));
  EXPECT_EQ(cloud->quota_asked, 3);
  EXPECT_EQ(capacity_changes, changes + 1) << "the same value again is no change";
}

TEST_F(CloudProviderTest, QuotaIsReadOnceInFiveMinutesHoweverOftenItIsUsed) {  // F-lazy-cache
  StartProvider();
  cloud->limits["instances"] = 7;
  for (int i = 0; i < 29; ++i) {
    time.Advance(seconds(10));
    EXPECT_EQ(AvailableInstances(), 10);
  }
  EXPECT_EQ(cloud->quota_asked, 1) << "what is known is young enough";
  time.Advance(seconds(12));
  EXPECT_EQ(cloud->quota_asked, 2);
  EXPECT_EQ(AvailableInstances(), 7);
}

TEST_F(CloudProviderTest, FailedReadKeepsTheOldQuota) {  // F-lazy-cache
  StartProvider();
  cloud->list_fault = Error(Verdict::kRetry, "the cloud is away");
  provider->InvalidateQuota();
  time.Advance(minutes(10));
  EXPECT_EQ(AvailableInstances(), 10);
  cloud->list_fault.reset();
  cloud->limits["instances"] = 5;
  time.Advance(minutes(2));
  EXPECT_EQ(AvailableInstances(), 5);
}

TEST_F(CloudProviderTest, UnreachableCloudDoesNotPreventTheStart) {
  prepare_cloud = [](ScriptedAdapter& adapter) { adapter.list_fault = Error(Verdict::kRetry, "away"); };
  StartProvider();
  EXPECT_EQ(AvailableInstances(), kUnlimited);
}

// D-30
TEST_F(CloudProviderTest, ACloudThatCannotBeReadIsAFaultUntilItCan) {
  prepare_cloud = [](ScriptedAdapter& adapter) { adapter.list_fault = Error(Verdict::kRetry, "away"); };
  StartProvider();
  ASSERT_EQ(fault_reports.size(), 1u) << "known when the start ends";
  EXPECT_EQ(fault_reports.back()->cause, "away");
  EXPECT_GT(fault_reports.back()->next_attempt, time.loop().SteadyNow());
  time.Advance(minutes(5));
  EXPECT_LE(*fault_reports.back()->next_attempt, time.loop().SteadyNow() + seconds(42))
      << "30 s, give or take 40 %";
  cloud->list_fault.reset();
  time.Advance(seconds(43));
  EXPECT_FALSE(fault_reports.back());
  cloud->list_fault = Error(Verdict::kRetry, "away again");
  provider->InvalidateQuota();
  time.Advance(seconds(2));
  EXPECT_EQ(fault_reports.back()->cause, "away again");
}

// D-30
TEST_F(CloudProviderTest, AFailedCleanUpShowsWhetherTheCloudCanBeUsed) {
  StartProvider();
  cloud->list_fault = Error(Verdict::kRetry, "away");
  EXPECT_THROW(Clean(), Error);
  time.Advance(seconds(2));
  ASSERT_TRUE(fault_reports.back());
  EXPECT_EQ(fault_reports.back()->cause, "away");
}

TEST_F(CloudProviderTest, ACloudThatDoesNotAnswerDelaysTheStartByHalfAMinuteAndIsReported) {
  prepare_cloud = [](ScriptedAdapter& adapter) { adapter.quota_duration = std::chrono::hours(1); };
  SteadyTime before = time.loop().SteadyNow();
  StartProvider();
  EXPECT_EQ(time.loop().SteadyNow() - before, seconds(30));
  EXPECT_EQ(AvailableInstances(), kUnlimited);
  ASSERT_EQ(fault_reports.size(), 1u);
  EXPECT_EQ(fault_reports.back()->cause, "its cloud has not answered for 30 s");
}

TEST_F(CloudProviderTest, ACloudThatAnswersHasNoFault) {
  StartProvider();
  ASSERT_EQ(fault_reports.size(), 1u);
  EXPECT_FALSE(fault_reports.back());
}

TEST_F(CloudProviderTest, AListThatFailsForAnHourStopsNothing) {
  StartProvider();
  double before = provider->AvailableQuota().Get("instances");
  cloud->list_fault = Error(Verdict::kRetry, "503 not available");
  provider->InvalidateQuota();
  std::size_t reports = fault_reports.size();
  for (int minute = 0; minute < 60; ++minute) {
    EXPECT_THROW(time.Run(provider->CleanupLeakedResources()), Error);
    time.Advance(std::chrono::minutes(1));
  }
  EXPECT_EQ(provider->AvailableQuota().Get("instances"), before);
  time.Run(LaunchNode());
  EXPECT_EQ(Stored().state, NodeState::kReady);
  EXPECT_LE(fault_reports.size() - reports, 200u) << "about twice a minute";
  cloud->list_fault.reset();
  time.Advance(std::chrono::minutes(2));
  EXPECT_EQ(provider->AvailableQuota().Get("instances"), before);
}

// What an adapter returns is checked before it gets into records.
TEST_F(CloudProviderTest, AnInstanceThatMakesNoSenseIsAFailedAttempt) {
  config->launch_retries = 1;
  StartProvider();
  pool->use_internal_ip = false;
  cloud->address = "\xff\xfe";
  EXPECT_EQ(LaunchFails(), Verdict::kFail);
  EXPECT_EQ(Stored().interface_ip, std::nullopt);
}

TEST(EndOfConsoleTest, IsItsLastLines) {
  EXPECT_EQ(EndOfConsole(""), std::nullopt);
  EXPECT_EQ(EndOfConsole("login: "), "login: ");
  std::string lines;
  while (lines.size() < 100'000) lines += "a line\n";
  std::string end = *EndOfConsole(lines);
  EXPECT_LE(end.size(), 16'384u);
  EXPECT_GE(end.size(), 16'370u);
  EXPECT_EQ(end.substr(0, 7), "a line\n");
  EXPECT_EQ(EndOfConsole(std::string(100'000, 'x'))->size(), 16'384u);
}

TEST(CheckInstanceTest, NamesTheFieldThatMakesNoSense) {
  std::vector<std::pair<std::string, std::function<void(Instance&)>>> faults = {
      {"external_id is neither", [](Instance& instance) { instance.external_id = 7; }},
      {"external_id is not UTF-8", [](Instance& instance) { instance.external_id = "\xff"; }},
      {"driver_data is not UTF-8", [](Instance& instance) { instance.driver_data = "\xff"; }},
      {"node_attributes is not UTF-8",
       [](Instance& instance) {
         instance.node_attributes = {{"a", "\xff"}};
       }},
      {"host_keys",
       [](Instance& instance) {
         instance.host_keys = {"ssh-ed25519 AAAA", "\xff"};
       }},
      {"interface_ip", [](Instance& instance) { instance.interface_ip = "\xff"; }},
      {"public_ipv4", [](Instance& instance) { instance.public_ipv4 = "\xff"; }},
      {"public_ipv6", [](Instance& instance) { instance.public_ipv6 = "\xff"; }},
      {"private_ipv4", [](Instance& instance) { instance.private_ipv4 = "\xff"; }},
      {"private_ipv6", [](Instance& instance) { instance.private_ipv6 = "\xff"; }},
      {"cloud", [](Instance& instance) { instance.cloud = "\xff"; }},
      {"az", [](Instance& instance) { instance.az = "\xff"; }},
      {"region", [](Instance& instance) { instance.region = "\xff"; }},
      {"host_id", [](Instance& instance) { instance.host_id = "\xff"; }},
      {"machine_type", [](Instance& instance) { instance.machine_type = "\xff"; }},
      {"choice", [](Instance& instance) { instance.choice = "\xff"; }},
  };
  Instance good;
  good.external_id = boost::json::object{{"id", "machine-1"}};
  CheckInstance(good);
  for (const auto& [message, spoil] : faults) {
    Instance instance = good;
    spoil(instance);
    auto check = [&] { CheckInstance(instance); };
    EXPECT_THAT(check, ::testing::ThrowsMessage<Error>(::testing::HasSubstr(message)));
  }
}

TEST_F(CloudProviderTest, ManyInvalidationsCauseFewReads) {
  StartProvider();
  for (int i = 0; i < 100; ++i) {
    provider->InvalidateQuota();
    time.Advance(std::chrono::milliseconds(100));
  }
  EXPECT_LE(cloud->quota_asked, 12);
}

// D-26
// LV-25
TEST_F(CloudProviderTest, WhatTheCloudAnnouncesOfOthersUseIsReadAtOnce) {
  StartProvider();
  int changes = capacity_changes;
  cloud->machines["foreign"] = Foreign(3);
  cloud->framework.QuotaChanged();
  time.Advance(seconds(2));
  EXPECT_EQ(AvailableInstances(), 7);
  EXPECT_EQ(capacity_changes, changes + 1) << "requests that wait are considered again";
}

TEST_F(CloudProviderTest, ImpossibleLabelIsInErrorAndProbedAgainAfterFiveMinutes) {
  StartProvider();
  cloud->label_fault = Error(Verdict::kInvalid, "no such flavor");
  EXPECT_THROW(provider->QuotaForLabel(*label), Error);
  EXPECT_EQ(provider->LabelReady(*label), Readiness::kNotReady);
  EXPECT_THROW(provider->QuotaForLabel(*label), Error);
  EXPECT_EQ(cloud->label_asked, 1) << "not asked again while in error";
  int changes = capacity_changes;
  cloud->label_fault.reset();
  time.Advance(minutes(5) + seconds(1));
  EXPECT_GT(capacity_changes, changes);
  EXPECT_EQ(provider->LabelReady(*label), Readiness::kReady);
  EXPECT_EQ(provider->QuotaForLabel(*label).Get("cores"), 2);
}

TEST_F(CloudProviderTest, PassingFaultOfALabelIsNotRemembered) {
  StartProvider();
  cloud->label_fault = Error(Verdict::kRetry, "flavors are not known yet");
  EXPECT_THROW(provider->QuotaForLabel(*label), Error);
  EXPECT_EQ(provider->LabelReady(*label), Readiness::kReady);
  cloud->label_fault.reset();
  EXPECT_EQ(provider->QuotaForLabel(*label).Get("cores"), 2);
  provider->QuotaForLabel(*label);
  EXPECT_EQ(cloud->label_asked, 2);
}

TEST_F(CloudProviderTest, ChangesInTheCloudAreNoticedByTheNextCheck) {  // D-26, LA-66
  StartProvider();
  cloud->label_fault = Error(Verdict::kRetry, "flavors are not known yet");
  Clean();
  int changes = capacity_changes;
  Clean();
  EXPECT_EQ(capacity_changes, changes);
  cloud->label_fault.reset();
  Clean();
  EXPECT_EQ(capacity_changes, changes + 1);
}

// drivers.md 2.2, K8S-85
TEST_F(CloudProviderTest, AnAdapterThatFollowsOthersIsAskedWhenItAnnouncesAChange) {
  prepare_cloud = [](ScriptedAdapter& adapter) {
    adapter.others = QuotaInformation::Amount({{"instances", 4}});
  };
  StartProvider();
  EXPECT_TRUE(provider->waits_for_others());
  EXPECT_EQ(provider->AvailableQuota().Get("instances"), 6);
  int lists = cloud->lists_asked;
  int changes = capacity_changes;
  for (int i = 0; i < 100; ++i) {
    cloud->others = QuotaInformation::Amount({{"instances", i % 2}});
    cloud->framework.QuotaChanged();
    time.Advance(std::chrono::milliseconds(10));
  }
  time.Advance(std::chrono::seconds(2));
  EXPECT_EQ(provider->UsedByOthers().Get("instances"), 1);
  EXPECT_GT(capacity_changes, changes);
  EXPECT_LE(cloud->quota_asked, 5) << "once a second";
  EXPECT_EQ(cloud->lists_asked, lists) << "without a list of machines";
  provider->InvalidateQuota();
  time.Advance(std::chrono::seconds(2));
  EXPECT_EQ(cloud->lists_asked, lists + 1) << "the cloud refused: everything is read again";
}

// drivers.md 5.8
TEST_F(CloudProviderTest, ALabelIsAskedAgainWhenTheAdapterSaysSo) {
  prepare_cloud = [](ScriptedAdapter& adapter) {
    adapter.label_fault = Error(Verdict::kInvalid, "too large");
  };
  StartProvider();
  EXPECT_THROW(provider->QuotaForLabel(*label), Error);
  EXPECT_EQ(provider->LabelReady(*label), Readiness::kNotReady);
  int changes = capacity_changes;
  cloud->label_fault.reset();
  EXPECT_THROW(provider->QuotaForLabel(*label), Error) << "an error is remembered";
  cloud->framework.NeedsChanged();
  EXPECT_GT(capacity_changes, changes);
  EXPECT_EQ(provider->QuotaForLabel(*label).Get("instances"), 1);
}

TEST_F(CloudProviderTest, DeletesTheMachineOfANode) {
  StartProvider();
  time.Run(LaunchNode());
  Node record = Stored();
  time.Run(provider->DeleteResources(last_id, record));
  EXPECT_TRUE(cloud->machines.empty());
  EXPECT_EQ(cloud->pool_of_deletion, PoolName("main"));
  // Again: that it is gone already is success.
  time.Run(provider->DeleteResources(last_id, record));
  record.external_id = nullptr;
  time.Run(provider->DeleteResources(last_id, record));
  EXPECT_EQ(cloud->deleted.size(), 2u);
}

TEST_F(CloudProviderTest, DeletionIsGivenUpAfter600Seconds) {
  StartProvider();
  time.Run(LaunchNode());
  cloud->delete_duration = std::chrono::hours(1);
  SteadyTime start = time.loop().SteadyNow();
  EXPECT_THROW(time.Run(provider->DeleteResources(last_id, Stored()), minutes(30)), Error);
  EXPECT_EQ(time.loop().SteadyNow() - start, seconds(600));
}

// drivers.md 5.11, launcher.27.6
TEST_F(CloudProviderTest, LeakedResourceIsDeletedInTheSecondSweep) {
  StartProvider();
  NodeId known = MakeNode("server-1");
  cloud->resources = {
      Owned("server", "server-1", {{"nodepool_node_id", known.str()}}),
      Owned("server", "server-2", {{"nodepool_node_id", "0000009999"}}),
      Owned("server", "server-5", {{"nodepool_node_id", "0000009998"}}),
      Resource{"server", "server-3", {{"nodepool_provider_name", "other"}, {"nodepool_node_id", "1"}}},
      Resource{"server", "server-4", {}}};
  Clean();
  EXPECT_THAT(cloud->deleted_resources, IsEmpty());
  Clean();
  EXPECT_THAT(cloud->deleted_resources, ElementsAre("server-2", "server-5"));
  EXPECT_THAT(leaks, ElementsAre("2 servers"));
  Clean();
  EXPECT_EQ(cloud->deleted_resources.size(), 2u);
}

// D-92
TEST_F(CloudProviderTest, OldMachineOfALivingNodeIsLeaked) {
  StartProvider();
  NodeId node = MakeNode("server-new");
  cloud->resources = {Owned("server", "server-old", {{"nodepool_node_id", node.str()}}),
                      Owned("server", "server-new", {{"nodepool_node_id", node.str()}}),
                      Owned("volume", "volume-1", {{"nodepool_node_id", node.str()}})};
  Clean();
  Clean();
  EXPECT_THAT(cloud->deleted_resources, ElementsAre("server-old"));
}

// D-92, drivers.5.2
TEST_F(CloudProviderTest, TheMachineOfALivingNodeMayHaveAnIdOfSeveralParts) {
  StartProvider();
  NodeId node = MakeNode({{"host", "host-new"}, {"server", "server-new"}});
  for (const char* id : {"server-old", "server-new"})
    cloud->resources.push_back(Owned("server", id, {{"nodepool_node_id", node.str()}}));
  cloud->resources.push_back(Owned("host", "host-new", {{"nodepool_node_id", node.str()}}));
  Clean();
  Clean();
  EXPECT_THAT(cloud->deleted_resources, ElementsAre("server-old"));
}

TEST_F(CloudProviderTest, AnIdOfSeveralPartsIsListed) {
  auto make = [](const AdapterEnvironment& of_adapter) {
    auto scripted = std::make_unique<ScriptedAdapter>(of_adapter);
    Instance machine = Foreign(1);
    machine.external_id = boost::json::object{{"server", "a"}};
    scripted->machines["a"] = machine;
    return scripted;
  };
  CloudTools tools({time.loop(), random, blocking_pool}, config, make);
  EXPECT_EQ(time.Run(tools.ListMachines()).front().id, R"({"server":"a"})");
  time.Run(tools.Stop());
}

TEST_F(CloudProviderTest, NothingIsCleanedWhileTheRecordsAreUnknown) {
  StartProvider();
  cloud->resources = {Owned("server", "server-1", {{"nodepool_node_id", "0000009999"}})};
  zk.Disconnect(*client);
  time.Advance(seconds(1));
  Clean();
  Clean();
  EXPECT_THAT(cloud->deleted_resources, IsEmpty());
  zk.Reconnect(*client);
}

TEST_F(CloudProviderTest, StopWaitsForALaunchInProgress) {
  StartProvider();
  TaskGroup group(time.loop(), log::Logger("test.launch"));
  group.Spawn("launch", LaunchNode());
  ASSERT_TRUE(time.RunUntil([&] { return cloud->requested.size() == 1; }));
  time.Run(provider->Stop());
  EXPECT_EQ(group.size(), 0u);
  EXPECT_EQ(Stored().state, NodeState::kReady);
}

}  // namespace

}  // namespace nodepool::driver::cloud
