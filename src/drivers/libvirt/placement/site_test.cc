#include "drivers/libvirt/placement/site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/ids.h"
#include "drivers/libvirt/machine/machine_fixture_for_test.h"

namespace nodepool::drivers::libvirt {

namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

HostRoom RoomOf(std::string name, double cores, double used_cores) {
  HostRoom host;
  host.name = std::move(name);
  host.limit = {kNoLimit, cores, 100000, 1000};
  host.used = {used_cores, used_cores, used_cores * 100, 0};
  return host;
}

constexpr Need kFour{1, 4, 1024, 10};

// LV-27
TEST(Placement, SpreadsOrPacks) {
  std::vector<HostRoom> hosts = {RoomOf("a", 16, 8), RoomOf("b", 16, 4), RoomOf("c", 16, 13)};
  EXPECT_EQ(ChooseHost(hosts, kFour, Placement::kSpread), "b");
  EXPECT_EQ(ChooseHost(hosts, kFour, Placement::kPack), "a") << "c has no room";
}

TEST(Placement, EqualHostsAreTakenByName) {
  std::vector<HostRoom> hosts = {RoomOf("b", 8, 0), RoomOf("a", 8, 0)};
  EXPECT_EQ(ChooseHost(hosts, kFour, Placement::kSpread), "a");
  EXPECT_EQ(ChooseHost(hosts, kFour, Placement::kPack), "a");
}

// LV-26
TEST(Placement, PartsOfSeveralHostsAreNoRoom) {
  std::vector<HostRoom> hosts = {RoomOf("a", 8, 4), RoomOf("b", 8, 4)};
  auto chosen = ChooseHost(hosts, Need{1, 8, 1024, 10}, Placement::kSpread);
  ASSERT_FALSE(chosen);
  EXPECT_FALSE(chosen.error().is_forever);
  EXPECT_EQ(chosen.error().reasons, "a: 4 of 8 cores free, needs 8; b: 4 of 8 cores free, needs 8");
}

TEST(Placement, WhatFitsNoEmptyHostNeverFits) {
  std::vector<HostRoom> hosts = {RoomOf("a", 8, 4)};
  auto chosen = ChooseHost(hosts, Need{1, 9, 1024, 10}, Placement::kSpread);
  ASSERT_FALSE(chosen);
  EXPECT_TRUE(chosen.error().is_forever);
  hosts.push_back(RoomOf("b", 0, 0));
  hosts.back().unusable = "it cannot be reached";
  chosen = ChooseHost(hosts, Need{1, 9, 1024, 10}, Placement::kSpread);
  EXPECT_FALSE(chosen.error().is_forever) << "b may be large enough";
  EXPECT_THAT(chosen.error().reasons, ::testing::HasSubstr("b: it cannot be reached"));
}

// LV-23
TEST(Placement, HostsWithTheImageComeBeforeThoseThatCanGetIt) {
  std::vector<HostRoom> hosts = {RoomOf("a", 16, 0), RoomOf("b", 16, 12)};
  hosts[0].has_image = false;
  hosts[0].can_get_image = true;
  EXPECT_EQ(ChooseHost(hosts, kFour, Placement::kSpread), "b");
  hosts[1].used.cores = 13;
  EXPECT_EQ(ChooseHost(hosts, kFour, Placement::kSpread), "a");
}

TEST(Placement, OnlyHostsWithTheImage) {
  std::vector<HostRoom> hosts = {RoomOf("a", 16, 0), RoomOf("b", 16, 8)};
  hosts[0].has_image = false;
  EXPECT_EQ(ChooseHost(hosts, kFour, Placement::kSpread), "b");
}

// LV-27
TEST(Placement, NeverExceedsAHost) {
  SeededRandom random(1);
  for (int round = 0; round < 1000; ++round) {
    std::vector<HostRoom> hosts;
    for (const char* name : {"a", "b", "c"}) hosts.push_back(RoomOf(name, double(random.Below(16)), 0));
    while (true) {
      Need need{1, double(1 + random.Below(8)), 100, 1};
      auto chosen = ChooseHost(hosts, need, round % 2 == 0 ? Placement::kSpread : Placement::kPack);
      if (!chosen) break;
      auto host = std::ranges::find(hosts, *chosen, &HostRoom::name);
      host->used.Add(need);
      ASSERT_LE(host->used.cores, host->limit.cores);
    }
  }
}

// Which host a machine goes to, and what is said of those that cannot be used.

using driver::cloud::Instance;
using driver::testing::Recorder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// LV-24, LV-25
TEST_F(MachineTest, LimitsAreTheSumOfUsableHosts) {
  AddHost("b");
  AddHost("c");
  config->hosts[2].is_paused = true;
  prepare = [](testing::FakeHypervisor& host) { host.size = {8, 16384, false}; };
  Start();
  EXPECT_EQ(time.Run(adapter->QuotaLimits()).Get("cores"), 16);
  Fake("b").Break("libvirtd has closed the connection");
  EXPECT_EQ(time.Run(adapter->QuotaLimits()).Get("cores"), 8);
  Fake("b").is_reachable = true;
  time.Advance(std::chrono::minutes(3));
  EXPECT_EQ(time.Run(adapter->QuotaLimits()).Get("cores"), 16);
}

// LV-24
TEST_F(MachineTest, WithoutAUsableHostRequestsWait) {
  Start();
  Fake().Break("libvirtd has closed the connection");
  Error error = CreateFails();
  EXPECT_EQ(error.verdict(), Verdict::kQuota);
  EXPECT_THAT(error.message(), HasSubstr("a: libvirtd has closed the connection"));
  auto limits = time.Run(Attempt(adapter->QuotaLimits()));
  ASSERT_FALSE(limits);
  EXPECT_THAT(limits.error().message(), HasSubstr("host a: libvirtd has closed the connection"));
}

// LV-24
TEST_F(MachineTest, ALaunchBeforeAnyHostWasReachedWaits) {
  prepare = [](testing::FakeHypervisor& host) { host.is_reachable = false; };
  Start(false);
  Error error = CreateFails();
  EXPECT_EQ(error.verdict(), Verdict::kQuota);
  EXPECT_THAT(error.message(), HasSubstr("host a: connecting to libvirt: no route to host"));
}

// LV-31
TEST_F(MachineTest, WhatRunsOnAHostIsMeasured) {
  Start();
  time.Run(Fake().StartDomain(
      "<domain><name>x</name><uuid>u</uuid><memory unit='GiB'>1</memory><vcpu>7</vcpu></domain>"));
  time.Run(adapter->ListInstances());
  EXPECT_TRUE(observer.hosts["a"].is_up);
  EXPECT_EQ(observer.hosts["a"].instances, 1);
  EXPECT_EQ(observer.hosts["a"].cores, 7);
  EXPECT_EQ(observer.hosts["a"].memory, 1024);
  Fake().Break("libvirtd has closed the connection");
  EXPECT_FALSE(observer.hosts["a"].is_up);
}

// driver-libvirt.md 20
TEST_F(MachineTest, HostsAreAnnouncedAndTheirCallsReported) {
  AddHost("b");
  Start();
  EXPECT_EQ(observer.users, (std::map<std::string, int>{{"a", 1}, {"b", 1}}));
  Fake("b").EndCall("start", std::chrono::seconds(2), true);
  ASSERT_EQ(observer.calls.size(), 1u);
  EXPECT_EQ(observer.calls[0].host, "b");
  EXPECT_EQ(observer.calls[0].provider, config->name);
  for (int stop = 0; stop < 2; ++stop) time.Run(adapter->Stop(), kLong);
  EXPECT_EQ(observer.users, (std::map<std::string, int>{{"a", 0}, {"b", 0}}));
}

// LV-25
TEST_F(MachineTest, ForeignDomainsTakeRoom) {
  Start();
  time.Run(Fake().StartDomain(
      "<domain><name>x</name><uuid>u</uuid><memory unit='GiB'>1</memory><vcpu>7</vcpu></domain>"));
  std::vector<Instance> instances = time.Run(adapter->ListInstances());
  ASSERT_EQ(instances.size(), 1u);
  EXPECT_EQ(instances[0].quota.Get("cores"), 7);
  EXPECT_EQ(instances[0].quota.Get("ram"), 1024);
  EXPECT_THAT(CreateFails().message(), HasSubstr("a: 1 of 8 cores free, needs 2"));
}

// LV-25
TEST_F(MachineTest, TheQuotaIsReadAgainAtOnceWhenForeignDomainsStartOrEnd) {
  Start();
  int& changes = framework.quota;
  time.Run(
      Fake().StartDomain("<domain><name>x</name><uuid>u</uuid><memory>1</memory><vcpu>7</vcpu></domain>"));
  EXPECT_EQ(changes, 1);
  Fake().EndDomain("u");
  EXPECT_EQ(changes, 2);
  Recorder machine;
  Create(machine);
  Delete(machine);
  EXPECT_EQ(changes, 2) << "those of nodes are counted by their records";
}

// LV-27
TEST_F(MachineTest, MachinesSpreadOverTheHosts) {
  AddHost("b");
  Start();
  Recorder first, second;
  EXPECT_EQ(Create(first, "0000000001").host_id, "a");
  EXPECT_EQ(Create(second, "0000000002").host_id, "b");
}

// LV-27
TEST_F(MachineTest, MachinesMadeAtATimeTakeTheRoomOfEachOther) {
  AddHost("b");
  Start();
  label->vcpus = 4;
  std::vector<Recorder> machines(4);
  TaskGroup group(time.loop(), log::Logger("test"));
  auto drop = [](Task<Instance> creation) -> Task<> { co_await std::move(creation); };
  for (std::size_t i = 0; i < machines.size(); ++i) {
    group.Spawn("creation", drop(adapter->Create(machines[i], Parameters(fmt::format("000000000{}", i)))));
  }
  ASSERT_TRUE(time.RunUntil([&] { return group.size() == 0; }));
  EXPECT_EQ(Fake("a").domains.size(), 2u);
  EXPECT_EQ(Fake("b").domains.size(), 2u);
}

// LV-26
TEST_F(MachineTest, AHostIsNeverOverbooked) {
  Start();
  label->vcpus = 8;
  Recorder machine;
  Create(machine, "0000000001");
  Error error = CreateFails("0000000002");
  EXPECT_EQ(error.verdict(), Verdict::kQuota);
  EXPECT_THAT(error.message(), HasSubstr("a: 0 of 8 cores free, needs 8"));
  Delete(machine);
  Recorder again;
  Create(again, "0000000002");
  label->vcpus = 9;
  EXPECT_EQ(CreateFails("0000000003").verdict(), Verdict::kInvalid);
}

// LV-29
TEST_F(MachineTest, VolumesWithoutADomainAreListedByTheirNames) {
  Start();
  Fake().AddVolume({"np.here.node.0000000007.0a1b2c3d.root", "/p", "qcow2", 1, 1, ""});
  Fake().AddVolume({"np.here.image.0000000003.0000000001.qcow2", "/p", "qcow2", 1, 1, ""});
  Fake().AddVolume({"np.here.other", "/p", "qcow2", 1, 1, ""});
  auto resources = time.Run(adapter->ListResources());
  ASSERT_EQ(resources.size(), 2u);
  EXPECT_EQ(resources[0].type, "image");
  EXPECT_EQ(resources[0].metadata.at("nodepool_build_id"), "0000000003");
  EXPECT_EQ(resources[1].type, "volume");
  EXPECT_EQ(resources[1].metadata.at("nodepool_node_id"), "0000000007");
  EXPECT_TRUE(resources[1].outlives_machine);
  time.Run(adapter->DeleteResource(resources[1]));
  EXPECT_FALSE(Fake().volumes.contains("np.here.node.0000000007.0a1b2c3d.root"));
}

// LV-31
TEST_F(MachineTest, MachinesOfAHostThatIsDownAreNotMissing) {
  Start();
  Recorder machine;
  Create(machine);
  Fake().Break("libvirtd has closed the connection");
  EXPECT_THAT(time.Run(adapter->MissingMachines({machine.external_id})), IsEmpty());
  EXPECT_EQ(time.Run(adapter->ListInstances()).size(), 0u) << "none was listed before";
  Recorder deletion;
  auto deleted = time.Run(Attempt(adapter->Delete(deletion, machine.external_id)));
  EXPECT_TRUE(FailedWith(deleted, Verdict::kRetry));
}

TEST_F(MachineTest, ImagesDecideWhetherALabelIsReady) {
  prepare = [](testing::FakeHypervisor& host) { host.volumes.clear(); };
  Start();
  EXPECT_EQ(adapter->LabelReady(*label), driver::Readiness::kNotReady);
  Fake().AddVolume({"debian.qcow2", "/pool/debian.qcow2", "qcow2", kGibibyte, 1, ""});
  framework.capacity = 0;
  time.Run(adapter->QuotaLimits());
  EXPECT_EQ(adapter->LabelReady(*label), driver::Readiness::kReady);
  EXPECT_EQ(framework.capacity, 1);
}

// Two hosts of 8 cores; machines of 2.
class SameHostTest : public MachineTest {
 protected:
  void SetUp() override {
    MachineTest::SetUp();
    AddHost("b");
  }
  Instance CreateFor(const std::string& request, int nodes, std::optional<std::string> az = std::nullopt) {
    auto parameters = Parameters(fmt::format("{:010}", ++last_node_));
    parameters.request_id = RequestId(request);
    parameters.request.node_types.assign(static_cast<std::size_t>(nodes), label->name);
    parameters.az = std::move(az);
    return time.Run(adapter->Create(machines_.emplace_back(), std::move(parameters)), kLong);
  }

 private:
  int last_node_ = 0;
  std::list<Recorder> machines_;
};

// LV-27
TEST_F(SameHostTest, TheNodesOfARequestAreOnOneHostThatHasRoomForAll) {
  Start();
  EXPECT_EQ(CreateFor("100-1", 1).host_id, "a");
  EXPECT_EQ(CreateFor("100-2", 4).host_id, "b") << "a has room for three";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(CreateFor("100-2", 4).az, "b");
  EXPECT_EQ(CreateFor("100-3", 3).host_id, "a");
}

// LV-27
TEST_F(SameHostTest, WithoutRoomOnThatHostTheRequestWaits) {
  Start();
  CreateFor("100-1", 1);
  for (int i = 0; i < 3; ++i) CreateFor("100-2", 3, "b");
  try {
    CreateFor("100-3", 4);
    ADD_FAILURE() << "there is no room for four on one host";
  } catch (const Error& error) {
    EXPECT_EQ(error.verdict(), Verdict::kQuota);
    EXPECT_THAT(error.message(), HasSubstr("a: 6 of 8 cores free, needs 8; b: 2 of 8 cores free, needs 8"));
  }
  try {
    CreateFor("100-4", 5);
    ADD_FAILURE() << "no host is so large";
  } catch (const Error& error) {
    EXPECT_EQ(error.verdict(), Verdict::kInvalid);
  }
}

// LV-27
TEST_F(SameHostTest, PreferTakesAnotherHostWhereOneHasNoRoom) {
  config->same_host = SameHost::kPrefer;
  Start();
  std::map<std::string, int> machines;
  for (int i = 0; i < 6; ++i) ++machines[CreateFor("100-1", 6).host_id.value_or("")];
  EXPECT_EQ(machines["a"], 4);
  EXPECT_EQ(machines["b"], 2);
}

// LV-27
TEST_F(SameHostTest, OnABridgeItDoesNotMatter) {
  label->network = MachineNetwork{MachineNetwork::Kind::kBridge, "br0"};
  prepare = [](testing::FakeHypervisor& host) { host.addresses = {{AddressSource::kAgent, "192.0.2.7"}}; };
  Start();
  Instance first = CreateFor("100-1", 2), second = CreateFor("100-1", 2);
  EXPECT_NE(first.host_id, second.host_id);
  EXPECT_EQ(first.az, std::nullopt);
}

// LV-27
TEST_F(SameHostTest, ANodeThatIsReusedDecides) {
  Start();
  EXPECT_EQ(CreateFor("100-1", 2, "b").host_id, "b");
}

}  // namespace

}  // namespace nodepool::drivers::libvirt
