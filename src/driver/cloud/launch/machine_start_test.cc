#include "driver/cloud/launch/machine_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/testing/virtual_time.h"
#include "base/error.h"
#include "driver/cloud/quota/account_counters.h"

namespace nodepool::driver::cloud {

namespace {

using std::chrono::seconds;

TEST(MachineStartTest, AbsenceMeansSomethingOnceItWasListedOrAfterAMinute) {
  testing::VirtualTime time;
  MachineStart start(time.loop(), false);
  EXPECT_FALSE(start.IsGone(start.accepted() + seconds(59)));
  EXPECT_TRUE(start.IsGone(start.accepted() + seconds(60)));
  EXPECT_FALSE(start.IsUsable(false, true));
  EXPECT_TRUE(start.IsGone(start.accepted() + seconds(1)));
  EXPECT_TRUE(start.IsUsable(true, false));
}

TEST(MachineStartTest, APublicAddressIsWaitedForHalfAMinute) {
  testing::VirtualTime time;
  MachineStart start(time.loop(), true);
  time.Advance(seconds(100));
  EXPECT_FALSE(start.IsUsable(true, false));
  time.Advance(seconds(29));
  EXPECT_FALSE(start.IsUsable(true, false));
  EXPECT_TRUE(start.IsUsable(true, true));
  time.Advance(seconds(1));
  EXPECT_TRUE(start.IsUsable(true, false));
}

TEST(RecentMachinesTest, TheyAreRecentUntilTheyAreListedOrOld) {
  testing::VirtualTime time;
  RecentMachines<std::string> recent(time.loop(), seconds(60));
  recent.Add("a", "in a zone");
  recent.Add("b", "there");
  EXPECT_EQ(recent.Find("a"), "in a zone");
  recent.Remove("a");
  EXPECT_EQ(recent.Find("a"), std::nullopt);
  time.Advance(seconds(30));
  recent.Add("b", "made again");
  time.Advance(seconds(31));
  EXPECT_EQ(recent.Find("b"), "made again");
  time.Advance(seconds(30));
  EXPECT_EQ(recent.Find("b"), std::nullopt);
}

class Sizes : public MachineSizes<std::string, double> {
 public:
  using MachineSizes::Set;
  using MachineSizes::SetUnknown;
};

TEST(MachineSizesTest, OfSeveralKindsWhatAllUseAndTheSmallestAmountOfIt) {
  Sizes sizes;
  auto need = [](const std::string& kind, double cores) {
    return Resources{{"cores", cores}, {kind, 1}, {"instances", 1}};
  };
  EXPECT_THROW(sizes.LeastNeed({"small"}, need, "not known"), Error);
  sizes.Set("small", 2);
  sizes.Set("large", 8);
  sizes.SetUnknown("none");
  EXPECT_EQ(sizes.LeastNeed({"large", "none", "small"}, need, "not known"),
            (Resources{{"cores", 2}, {"instances", 1}}));
  EXPECT_EQ(sizes.LeastNeed({"none"}, need, "not known"), std::nullopt);
  sizes.SetUnknown("small");
  EXPECT_FALSE(sizes.IsUnknown("small")) << "sizes never change";
}

struct Machine {
  std::string owner = "ours";
  std::string state = "starting";
  std::string address;
};
using Machines = std::map<std::string, Machine>;

class StartFollowingTest : public ::testing::Test {
 protected:
  StartFollowingTest() {
    steps.is_it = [](const Machine& machine) { return machine.owner == "ours"; };
    steps.runs = [](const Machine& machine) {
      if (machine.state == "failed") throw Error(Verdict::kFail, "it failed");
      return machine.state == "running";
    };
    steps.has_address = [](const Machine& machine) { return !machine.address.empty(); };
    steps.ask = [this] { return Ask(); };
    steps.gone = [] { throw Error(Verdict::kFail, "it vanished"); };
  }
  ~StartFollowingTest() override { time.Run(tasks.Stop()); }

  Task<Machines> List() { co_return machines; }
  Task<bool> Ask() {
    ++asked;
    if (has_failed) throw Error(Verdict::kQuota, "the operation failed");
    co_return has_ended;
  }
  // How the start ends when `change` happens after 10 seconds; and how long that took.
  std::string EndOf(std::function<void()> change) {
    SteadyTime begun = time.loop().SteadyNow();
    StartFollowing<Machine> following(time.loop(), list, "m", true, steps);
    tasks.Spawn("change", ChangeLater(std::move(change)));
    Outcome<Machine> machine = time.Run(Attempt(following.Await()), std::chrono::hours(1));
    took = std::chrono::duration_cast<std::chrono::seconds>(time.loop().SteadyNow() - begun);
    return machine ? machine->state + " at " + machine->address : machine.error().message();
  }
  Task<> ChangeLater(std::function<void()> change) {
    co_await time.loop().SleepFor(std::chrono::seconds(10));
    change();
  }

  testing::VirtualTime time;
  SeededRandom random{1};
  TaskGroup tasks{time.loop(), log::Logger("test")};
  Machines machines;
  StartFollowing<Machine>::List list{tasks, random, log::Logger("test"), "machines",
                                     [this] { return List(); }};
  StartSteps<Machine> steps;
  int asked = 0;
  bool has_failed = false;
  bool has_ended = false;
  std::chrono::seconds took{0};
};

TEST_F(StartFollowingTest, ItEndsWhenTheMachineRunsAndHasItsAddress) {
  machines["m"] = {};
  EXPECT_EQ(EndOf([&] { machines["m"] = {"ours", "running", "a"}; }), "running at a");
  EXPECT_LE(took.count(), 12);
  EXPECT_EQ(asked, 0) << "the list shows it";
  machines["m"] = {};
  EXPECT_EQ(EndOf([&] { machines["m"].state = "running"; }), "running at ");
  EXPECT_GE(took.count(), 40) << "the address may come a moment later";
}

TEST_F(StartFollowingTest, AMachineThatFails) {
  machines["m"] = {};
  EXPECT_EQ(EndOf([&] { machines["m"].state = "failed"; }), "it failed");
}

TEST_F(StartFollowingTest, OneOfTheSameNameIsNotIt) {
  machines["m"] = {"another", "running", "a"};
  EXPECT_EQ(EndOf([&] { machines["m"] = {"ours", "running", "b"}; }), "running at b");
}

TEST_F(StartFollowingTest, WhileNoListShowsItTheCreationIsAskedAbout) {
  EXPECT_EQ(EndOf([&] { has_failed = true; }), "the operation failed");
  EXPECT_GE(asked, 3);
  EXPECT_LE(asked, 5) << "not with each list";
}

TEST_F(StartFollowingTest, AMachineThatVanishes) {
  machines["m"] = {};
  EXPECT_EQ(EndOf([&] {
              machines.clear();
              has_ended = true;
            }),
            "it vanished");
  EXPECT_LE(took.count(), 12);
  steps.ask = nullptr;
  machines["m"] = {};
  EXPECT_EQ(EndOf([&] { machines.clear(); }), "it vanished");
  EXPECT_LE(took.count(), 12);
}

TEST_F(StartFollowingTest, OneThatNeverAppearsVanishesAfterAMinute) {
  EXPECT_EQ(EndOf([] {}), "it vanished");
  EXPECT_GE(took.count(), 60);
  EXPECT_LE(took.count(), 65);
}

}  // namespace

}  // namespace nodepool::driver::cloud
