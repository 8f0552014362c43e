// Machines that QEMU has paused, since their disks could not be written.
#include "drivers/libvirt/machine/machine_fixture_for_test.h"

namespace nodepool::drivers::libvirt {
namespace {

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
