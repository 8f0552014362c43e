#include "async/task_group.h"
#include "driver/testing/contract.h"
#include "drivers/libvirt/machine/boot.h"
#include "drivers/libvirt/machine/machine_fixture_for_test.h"
#include "drivers/libvirt/machine/machines.h"

namespace nodepool::drivers::libvirt {

namespace {

using driver::cloud::Instance;
using driver::testing::Recorder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// TAKE-4
TEST_F(MachineTest, AMachineThatEndsByItselfIsAnnouncedAtOnceAndOurDeletionIsNot) {
  Start();
  Recorder deleted, stopped;
  Create(deleted, "0000000001");
  Delete(deleted);
  EXPECT_EQ(framework.taken, 0);
  Create(stopped, "0000000002");
  std::vector<boost::json::value> ids = {stopped.external_id};
  EXPECT_THAT(time.Run(adapter->MissingMachines(ids)), IsEmpty());
  Fake().EndDomain(Fake().domains.begin()->first);
  EXPECT_EQ(framework.taken, 1);
  EXPECT_EQ(time.Run(adapter->MissingMachines(ids)), ids) << "an older list is not taken for it";
}

// LV-4
TEST_F(MachineTest, KeepsTheContract) {
  Start();
  namespace contract = driver::testing;
  contract::Subject subject{time.loop(), *adapter, config->name, pool, label};
  subject.stall = [this](bool is_stalled) { is_stalled ? Fake().Stall() : Fake().GoOn(); };
  for (const contract::CheckResult& result : time.Run(contract::RunContract(std::move(subject)), kLong)) {
    EXPECT_EQ(result.status, contract::CheckResult::Status::kPassed) << result.check << ": " << result.detail;
  }
  EXPECT_THAT(Fake().domains, IsEmpty());
  EXPECT_EQ(Fake().volumes.size(), 1u) << "only the image is left";
}

// LV-3
TEST_F(MachineTest, AMachineIsADomainWithItsVolumes) {
  Start();
  Recorder machine;
  Instance instance = Create(machine);
  EXPECT_EQ(instance.interface_ip, "192.0.2.10");
  EXPECT_EQ(instance.private_ipv4, "192.0.2.10");
  EXPECT_EQ(instance.host_id, "a");
  EXPECT_EQ(instance.quota.Get("cores"), 2);
  EXPECT_EQ(instance.quota.Get("volume-gb"), 2) << "the image's virtual size";
  std::string id(machine.external_id.as_string());
  EXPECT_THAT(id, StartsWith("a/"));
  std::string prefix = "np.here.node.0000000042." + id.substr(2, 8);
  std::vector<std::string> names;
  for (const auto& [name, volume] : Fake().volumes) names.push_back(name);
  EXPECT_THAT(names, UnorderedElementsAre("debian.qcow2", prefix + ".root", prefix + ".console",
                                          prefix + ".nocloud", prefix + ".config-drive"));
  EXPECT_EQ(Fake().volumes.at(prefix + ".root").backing_path, "/pool/debian.qcow2");
  EXPECT_EQ(Fake().volumes.at(prefix + ".root").capacity, 2 * kGibibyte);
  ASSERT_EQ(Fake().domains.size(), 1u);
  EXPECT_EQ(ParseDomain(Fake().domains.begin()->second).name, "np0000000042-" + id.substr(2, 8));
  Delete(machine);
  EXPECT_THAT(Fake().domains, IsEmpty());
  EXPECT_EQ(Fake().volumes.size(), 1u);
}

// LV-65
TEST_F(MachineTest, AnotherMachineHasNeitherItsAddressNorItsVolumes) {
  Start();
  SeededRandom twin = random;
  std::string next = twin.Uuid(), other = next.substr(0, 6) + "00-0000-4000-8000-000000000000";
  time.Run(Fake().StartDomain("<domain><name>x</name><uuid>" + other + "</uuid></domain>"));
  time.Run(adapter->ListInstances());
  Recorder machine;
  Create(machine);
  std::string id(machine.external_id.as_string());
  EXPECT_NE(id.substr(2, 6), next.substr(0, 6));
}

// LV-5
TEST_F(MachineTest, TheIdIsStoredBeforeAnythingExists) {
  Start();
  class Observer : public Recorder {
   public:
    explicit Observer(testing::FakeHypervisor& host) : host_(host) {}
    Task<> SetExternalId(boost::json::value id) override {
      volumes = host_.volumes.size();
      co_await Recorder::SetExternalId(std::move(id));
    }
    std::size_t volumes = 0;

   private:
    testing::FakeHypervisor& host_;
  } machine(Fake());
  Create(machine);
  EXPECT_EQ(machine.volumes, 1u);
}

// LV-8
TEST_F(MachineTest, ADiskMayBeLargerThanItsImageButNotSmaller) {
  Start();
  label->disk = 1;
  Error error = CreateFails();
  EXPECT_EQ(error.verdict(), Verdict::kInvalid);
  EXPECT_THAT(error.message(), HasSubstr("label small has a disk of 1 GiB; its image has 2.0 GiB"));
  EXPECT_EQ(Fake().volumes.size(), 1u);
}

// LV-37
TEST_F(MachineTest, AnImageWithABackingFileIsRefused) {
  prepare = [](testing::FakeHypervisor& host) { host.volumes["debian.qcow2"].backing_path = "/etc/shadow"; };
  Start();
  EXPECT_THAT(CreateFails().message(), HasSubstr("an image must be complete"));
}

// LV-37
TEST_F(MachineTest, ARawImageIsRawWhateverItBeginsWith) {
  prepare = [](testing::FakeHypervisor& host) {
    VolumeInfo& image = host.volumes["debian.qcow2"];
    image.backing_path = "/etc/shadow";
    image.capacity = std::uint64_t{1000} * kGibibyte;
    image.length = 3 * kGibibyte;
  };
  config->cloud_images["debian"].format = "raw";
  Start();
  Recorder machine;
  EXPECT_EQ(Create(machine).quota.Get("volume-gb"), 3);
  EXPECT_THAT(Fake().domains.begin()->second, HasSubstr("<format type=\"raw\" />"));
}

// LV-10
TEST_F(MachineTest, AMachineIsGivenTheHostKeyThatItHasToShow) {
  config->has_own_host_keys = true;
  Start();
  Recorder machine;
  Instance instance = Create(machine);
  ASSERT_TRUE(instance.host_keys);
  ASSERT_EQ(instance.host_keys->size(), 1u);
  for (const auto& [name, content] : Fake().contents) {
    EXPECT_THAT(content, HasSubstr("ed25519_public: " + instance.host_keys->front())) << name;
    EXPECT_THAT(content, HasSubstr("BEGIN OPENSSH PRIVATE KEY")) << name;
  }
}

// driver-libvirt.md 9.1
TEST_F(MachineTest, AMachineMayBeInSeveralNetworksAndIsReachedInTheFirst) {
  Start();
  label->network = MachineNetwork{MachineNetwork::Kind::kNamed, "default"};
  label->more_networks = {"storage", "tests"};
  Recorder machine;
  EXPECT_EQ(Create(machine).interface_ip, "192.0.2.10");
  MachineId id = *ParseMachineId(machine.external_id.as_string());
  EXPECT_THAT(MacAddressesIn(Fake().domains.begin()->second),
              ::testing::ElementsAre(MacAddressOf(id), MacAddressOf(id, 1), MacAddressOf(id, 2)));
}

// LV-14
TEST_F(MachineTest, APowerOffWhileBootingEndsTheAttempt) {
  prepare = [](testing::FakeHypervisor& host) { host.boot_time = std::chrono::hours(1); };
  Start();
  Recorder machine;
  Outcome<Instance> outcome = std::unexpected(Failure(Error(Verdict::kFail, "")));
  TaskGroup group(time.loop(), log::Logger("test"));
  group.Spawn("creation", Keep(Attempt(adapter->Create(machine, Parameters("0000000042"))), outcome));
  ASSERT_TRUE(time.RunUntil([&] { return Fake().lease_calls > 1; }));
  SteadyTime before = time.loop().SteadyNow();
  Fake().EndDomain(Fake().domains.begin()->first);
  ASSERT_TRUE(time.RunUntil([&] { return group.size() == 0; }));
  EXPECT_LE(time.loop().SteadyNow() - before, std::chrono::seconds(2));
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message(), HasSubstr("ended before it had an address"));
}

// LV-30
TEST_F(MachineTest, ALaunchSurvivesALostConnectionUnlessItsMachineEnded) {
  prepare = [](testing::FakeHypervisor& host) { host.boot_time = std::chrono::minutes(2); };
  Start();
  for (bool has_ended : {false, true}) {
    Recorder machine;
    Outcome<Instance> outcome = std::unexpected(Failure(Error(Verdict::kFail, "")));
    TaskGroup group(time.loop(), log::Logger("test"));
    group.Spawn("creation", Keep(Attempt(adapter->Create(machine, Parameters("0000000042"))), outcome));
    ASSERT_TRUE(time.RunUntil([&] { return !Fake().domains.empty(); }));
    time.Advance(std::chrono::seconds(5));
    std::string uuid = Fake().domains.begin()->first;
    Fake().Break("libvirtd has closed the connection");
    if (has_ended) Fake().domains.erase(uuid);
    time.Advance(std::chrono::seconds(10));
    Fake().is_reachable = true;
    ASSERT_TRUE(time.RunUntil([&] { return group.size() == 0; }, std::chrono::minutes(5)));
    EXPECT_EQ(outcome.has_value(), !has_ended);
    Delete(machine);
  }
}

// LV-30
TEST_F(MachineTest, AStepIsRepeatedWhoseCallTheLossOfTheConnectionKeptFromTheHost) {
  Start();
  Fake().loss = testing::FakeHypervisor::Loss::kBefore;
  Recorder machine;
  Create(machine);
  EXPECT_EQ(Fake().losses, 5) << "four volumes and the start";
  Delete(machine);
  EXPECT_EQ(Fake().volumes.size(), 1u);
}

// LV-30
TEST_F(MachineTest, AStepIsNotTakenTwiceBecauseItsAnswerWasLost) {
  Start();
  Fake().loss = testing::FakeHypervisor::Loss::kAfter;
  Recorder machine;
  Create(machine);
  EXPECT_EQ(Fake().losses, 7) << "four volumes, the content of two, and the start";
  EXPECT_EQ(Fake().domains.size(), 1u);
  Delete(machine);
  EXPECT_EQ(Fake().volumes.size(), 1u);
}

// LV-30
TEST_F(MachineTest, ALostConnectionKeepsWhatIsReadyAndWhatIsBeingDeleted) {
  Start();
  Recorder ready, used;
  Create(ready, "0000000001");
  Create(used, "0000000002");
  TaskGroup group(time.loop(), log::Logger("test"));
  Outcome<> deleted;
  auto note = [&deleted](Task<Outcome<>> deletion) { return Keep(std::move(deletion), deleted); };
  group.Spawn("deletion", note(Attempt(adapter->Delete(used, used.external_id))));
  time.Advance(Fake().call_time / 2);
  Fake().Break("libvirtd has closed the connection");
  ASSERT_TRUE(time.RunUntil([&] { return group.size() == 0; }));
  EXPECT_TRUE(FailedWith(deleted, Verdict::kRetry)) << "the launcher deletes it again";
  EXPECT_THAT(time.Run(adapter->MissingMachines({ready.external_id})), IsEmpty());
  Fake().is_reachable = true;
  time.Advance(std::chrono::minutes(2));
  EXPECT_THAT(time.Run(adapter->MissingMachines({ready.external_id})), IsEmpty());
  Delete(used);
  EXPECT_EQ(Fake().domains.size(), 1u);
}

// LV-4
TEST_F(MachineTest, ACreationNeedsNoReadingOfTheQuotaBeforeIt) {
  Start(false);
  Recorder machine;
  EXPECT_EQ(Create(machine).quota.Get("volume-gb"), 2);
}

// LV-43
TEST_F(MachineTest, LeasesAreReadOnceForAllThatWait) {
  Start();
  std::vector<Recorder> machines(4);
  TaskGroup group(time.loop(), log::Logger("test"));
  auto drop = [](Task<Instance> creation) -> Task<> { co_await std::move(creation); };
  for (std::size_t i = 0; i < machines.size(); ++i) {
    group.Spawn("creation", drop(adapter->Create(machines[i], Parameters(fmt::format("000000000{}", i)))));
  }
  SteadyTime begun = time.loop().SteadyNow();
  ASSERT_TRUE(time.RunUntil([&] { return group.size() == 0; }));
  double seconds = std::chrono::duration<double>(time.loop().SteadyNow() - begun).count();
  EXPECT_LE(Fake().lease_calls, seconds * 4 + 1);
  time.Run(group.Stop());
}

// LV-15
TEST_F(MachineTest, TheConsoleIsReadFromItsVolume) {
  Start();
  Recorder machine;
  Create(machine);
  EXPECT_THAT(*time.Run(adapter->ConsoleLog(*label, machine.external_id)), HasSubstr("the console is empty"));
  std::string id(machine.external_id.as_string());
  Fake().contents["np.here.node.0000000042." + id.substr(2, 8) + ".console"] = "one\r\n\x1b[1mtwo\x1b[0m\n";
  EXPECT_EQ(time.Run(adapter->ConsoleLog(*label, machine.external_id)), "one\ntwo\n");
}

// LV-41
TEST_F(MachineTest, WithoutKvmAMachineHasMoreTimeToBoot) {
  Start();
  Recorder slow;
  EXPECT_EQ(Create(slow).boot_timeout, std::chrono::seconds(300));
}

// LV-41
TEST_F(MachineTest, MachinesHaveTheAcceleratorThatIsConfiguredAndThatTheHostOffers) {
  using enum Accelerator;
  struct Case {
    Accelerator configured;
    bool is_offered;
    const char* type;
  };
  constexpr Case kCases[] = {{kAuto, true, "kvm"},
                             {kAuto, false, "qemu"},
                             {kKvm, true, "kvm"},
                             {kTcg, true, "qemu"},
                             {kTcg, false, "qemu"}};
  for (const Case& example : kCases) {
    config->hosts[0].accelerator = example.configured;
    prepare = [&](testing::FakeHypervisor& host) { host.size.offers_kvm = example.is_offered; };
    Start();
    Recorder machine;
    Create(machine);
    EXPECT_THAT(Fake().domains.begin()->second, HasSubstr(fmt::format("<domain type=\"{}\"", example.type)));
    Delete(machine);
    time.Run(adapter->Stop(), kLong);
  }
}

// LV-41
TEST_F(MachineTest, AHostWithoutTheKvmThatIsConfiguredIsUnusable) {
  config->hosts[0].accelerator = Accelerator::kKvm;
  log::Capture log;
  Start(false);
  Error error = CreateFails();
  EXPECT_EQ(error.verdict(), Verdict::kQuota) << "requests wait until it is mended";
  EXPECT_THAT(error.message(), HasSubstr("host a: it offers no KVM; set accelerator to tcg"));
  EXPECT_THAT(Fake().domains, IsEmpty());
  EXPECT_EQ(log.Count("Host a cannot be used, and is tried again: it offers no KVM"), 1);
}

// LV-41
TEST_F(MachineTest, AKvmThatPrintsNothingIsReportedOnce) {
  prepare = [](testing::FakeHypervisor& host) { host.size.offers_kvm = true; };
  Start();
  Recorder machine;
  EXPECT_EQ(Create(machine).boot_timeout, std::nullopt);
  log::Capture log;
  for (int scan = 0; scan < 2; ++scan) time.Run(adapter->ConsoleLog(*label, machine.external_id));
  EXPECT_EQ(log.Count("set accelerator to tcg"), 1);
}

// LV-68
TEST(PlatformFor, IsWhatTheHostsArchitectureUsuallyHas) {
  LibvirtLabel label;
  Platform of_pc = PlatformFor(label, "x86_64"), of_arm = PlatformFor(label, "aarch64");
  EXPECT_EQ(of_pc.machine, "q35");
  EXPECT_EQ(of_pc.firmware, Firmware::kBios);
  EXPECT_EQ(of_arm.machine, "virt");
  EXPECT_EQ(of_arm.firmware, Firmware::kUefi);
  label.machine = "sbsa-ref";
  label.firmware = Firmware::kUefiSecure;
  EXPECT_EQ(PlatformFor(label, "aarch64").machine, "sbsa-ref");
  EXPECT_EQ(PlatformFor(label, "aarch64").firmware, Firmware::kUefiSecure);
}

// LV-68
TEST(PlatformFor, RefusesAWarmStartWhereTheUsualFirmwareHasVariables) {
  LibvirtLabel label;
  label.is_started_warm = true;
  EXPECT_EQ(PlatformFor(label, "x86_64").firmware, Firmware::kBios);
  EXPECT_THAT([&label] { PlatformFor(label, "aarch64"); },
              ::testing::ThrowsMessage<Error>(HasSubstr("machines of aarch64 have none")));
}

TEST(Consoles, ShowNothingThatATerminalWouldObey) {
  EXPECT_EQ(ConsoleText("\x1b[2J\x1b]0;title\a text"), "\\x1b]0;title\\x07 text");
}

// Machines that QEMU has paused, since their disks could not be written.

using driver::testing::Recorder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PausedTest : public MachineTest {
 protected:
  void SetUp() override {
    MachineTest::SetUp();
    label->vcpus = 1;
  }
  static std::string UuidOf(const Recorder& machine) {
    return ParseMachineId(machine.external_id.as_string())->uuid;
  }
  void Sweep() { time.Run(adapter->ListResources()); }
};

// LV-35
TEST_F(PausedTest, NothingNewIsMadeOnAHostThatIsFullUntilItHasRoomAgain) {
  Start();
  Recorder machine;
  Create(machine);
  Fake().space.available = 0;
  log::Capture log;
  Fake().PauseDomain(UuidOf(machine), "enospc");
  EXPECT_EQ(log.Count("on host a is paused, since its disk could not be written: the storage pool is full"),
            1);
  Sweep();
  EXPECT_THAT(Fake().resumed, IsEmpty());
  Fake().space.available = std::uint64_t{100} << 30;
  Error refusal = CreateFails("0000000043");
  EXPECT_EQ(refusal.verdict(), Verdict::kQuota);
  EXPECT_THAT(refusal.message(), HasSubstr("a: a machine there is paused, since the storage pool is full"));
  int changes = framework.capacity;
  Sweep();
  EXPECT_THAT(Fake().resumed, ElementsAre(UuidOf(machine)));
  EXPECT_GT(framework.capacity, changes) << "requests that wait are considered again";
  Recorder next;
  Create(next, "0000000043");
}

// LV-35
TEST_F(PausedTest, AHostIsNotFullAnyMoreWhenItsPausedMachineIsDeleted) {
  Start();
  Recorder machine, next;
  Create(machine);
  Fake().PauseDomain(UuidOf(machine), "enospc");
  Delete(machine);
  Create(next, "0000000043");
}

// LV-35
TEST_F(PausedTest, OnlyMachinesOfNodepoolThatLackRoomAreResumed) {
  Start();
  Recorder broken, resumed_by_hand;
  Create(broken, "0000000001");
  Create(resumed_by_hand, "0000000002");
  Fake().PauseDomain("0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d", "enospc");
  Recorder next;
  Create(next, "0000000003");
  Fake().PauseDomain(UuidOf(broken), "eio");
  Fake().PauseDomain(UuidOf(resumed_by_hand), "enospc");
  Fake().refuses_to_resume = true;
  Sweep();
  EXPECT_THAT(Fake().resumed, ElementsAre(UuidOf(resumed_by_hand)));
  Sweep();
  EXPECT_THAT(Fake().resumed, ElementsAre(UuidOf(resumed_by_hand))) << "it is not tried again";
}

// LV-35
TEST_F(PausedTest, AMachineThatIsPausedWhileItBootsEndsItsAttempt) {
  prepare = [](testing::FakeHypervisor& host) { host.boot_time = std::chrono::hours(1); };
  Start();
  Recorder machine;
  Outcome<driver::cloud::Instance> outcome = std::unexpected(Failure(Error(Verdict::kFail, "")));
  TaskGroup group(time.loop(), log::Logger("test"));
  group.Spawn("creation", Keep(Attempt(adapter->Create(machine, Parameters("0000000042"))), outcome));
  ASSERT_TRUE(time.RunUntil([&] { return Fake().lease_calls > 1; }));
  Fake().PauseDomain(UuidOf(machine), "eio");
  ASSERT_TRUE(time.RunUntil([&] { return group.size() == 0; }));
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message(), HasSubstr("its disk could not be written: I/O error eio"));
  Delete(machine);
  Recorder next;
  prepare = nullptr;
  Fake().boot_time = std::chrono::seconds(1);
  EXPECT_EQ(Create(next, "0000000043").host_id, "a") << "the host is not full";
}

}  // namespace

}  // namespace nodepool::drivers::libvirt
