#include "driver/cloud/leaks/missing_machines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "async/task_group.h"
#include "async/testing/virtual_time.h"
#include "base/log/logging.h"
#include "driver/cloud/cloud_provider_fixture_for_test.h"

namespace nodepool::driver::cloud {

namespace {

TEST(ExternalIdsTest, TheOrderOfKeysDoesNotMatter) {
  ExternalIds ids = {"a", boost::json::parse(R"({"cloud": {"name": "c", "zone": 1}, "vm": "b"})")};
  EXPECT_TRUE(ids.contains("a"));
  EXPECT_TRUE(ids.contains(boost::json::parse(R"({"vm": "b", "cloud": {"zone": 1, "name": "c"}})")));
  EXPECT_FALSE(ids.contains(boost::json::parse(R"({"vm": "c", "cloud": {"zone": 1, "name": "b"}})")));
  EXPECT_FALSE(ids.contains("b"));
  EXPECT_FALSE(ids.contains(nullptr));
}

using std::chrono::milliseconds;
using std::chrono::seconds;

class SecondLookTest : public ::testing::Test {
 protected:
  Task<> Look() {
    int seen = ++begun_;
    co_await time_.loop().SleepFor(length_);
    if (fails_) throw Error(Verdict::kRetry, "the cloud is away");
    seen_ = seen;
  }
  Task<> Ask() {
    int before = begun_;
    Outcome<> looked = co_await Attempt(look_.Take());
    if (!looked) ++failures_;
    if (looked && seen_ <= before) ++too_old_;
    ++answers_;
  }
  ~SecondLookTest() override { time_.Run(group_.Stop()); }

  testing::VirtualTime time_;
  TaskGroup group_{time_.loop(), log::Logger("test")};
  bool fails_ = false;
  Duration length_ = seconds(1);  // of a look
  int begun_ = 0;
  int seen_ = 0;
  int answers_ = 0;
  int failures_ = 0;
  int too_old_ = 0;
  SecondLook look_{time_.loop(), [this] { return Look(); }};
};

TEST_F(SecondLookTest, ManyShareALookThatBeganAfterTheyAsked) {
  for (int i = 0; i < 100; ++i) {
    group_.Spawn("ask", Ask());
    time_.Advance(milliseconds(20));
  }
  time_.Advance(seconds(3));
  EXPECT_EQ(answers_, 100);
  EXPECT_EQ(too_old_, 0);
  EXPECT_LE(begun_, 4);
}

TEST_F(SecondLookTest, HoweverOftenItIsAskedALookBeginsOnceASecond) {
  for (int i = 0; i < 20; ++i) {
    group_.Spawn("ask", Ask());
    time_.Advance(milliseconds(1500));
  }
  EXPECT_EQ(answers_, 20);
  EXPECT_EQ(begun_, 20);
  begun_ = seen_ = 0;
  length_ = milliseconds(1);
  for (int i = 0; i < 100; ++i) {
    group_.Spawn("ask", Ask());
    time_.Advance(milliseconds(50));
  }
  EXPECT_LE(begun_, 6);
}

TEST_F(SecondLookTest, AFailureIsThatOfAllWhoShareIt) {
  fails_ = true;
  for (int i = 0; i < 10; ++i) group_.Spawn("ask", Ask());
  time_.Advance(seconds(3));
  EXPECT_EQ(failures_, 10);
  EXPECT_LE(begun_, 2);
}

TEST_F(SecondLookTest, AnotherGoesOnWhereTheFirstIsCancelled) {
  TaskGroup cancelled(time_.loop(), log::Logger("test"));
  cancelled.Spawn("ask", Ask());
  time_.Advance(milliseconds(100));
  group_.Spawn("ask", Ask());
  time_.Run(cancelled.Stop());
  time_.Advance(seconds(3));
  EXPECT_EQ(answers_, 1);
  EXPECT_EQ(failures_, 0);
  EXPECT_EQ(too_old_, 0);
}

// Nodes whose machines the cloud has taken away.

using std::chrono::seconds;

class MissingMachinesTest : public ProviderTest {
 protected:
  void SetUp() override {
    ProviderTest::SetUp();
    prepare_cloud = [](ScriptedAdapter& adapter) { adapter.lists_all_machines = true; };
    StartProvider();
  }
  NodeId MakeNode(NodeState state, boost::json::value external_id, bool is_allocated = false) {
    Instance machine;
    machine.external_id = external_id;
    machine.quota = QuotaInformation::OneInstance();
    cloud->machines[boost::json::serialize(external_id)] = machine;
    Node record;
    record.SetState(state, time.loop().Now());
    record.provider = config->name;
    record.pool = PoolName("main");
    record.type = {LabelName("small")};
    record.external_id = std::move(external_id);
    if (is_allocated) record.allocated_to = RequestId("100-0000000001");
    NodeId id = time.Run(store.nodes.Create(record));
    time.RunUntil([&] { return nodes.Find(id) != nullptr; });
    return id;
  }
  void TakeAway(const boost::json::value& external_id) {
    cloud->machines.erase(boost::json::serialize(external_id));
  }
  void Check() { time.Run(provider->CleanupLeakedResources()); }
  NodeState StateOf(const NodeId& id) { return *time.Run(store.nodes.Read(id))->record.state; }

  log::Capture log_;
};

// TAKE-1
TEST_F(MissingMachinesTest, AReadyNodeIsMarkedInTheSecondCheck) {
  NodeId gone = MakeNode(NodeState::kReady, "a");
  NodeId there = MakeNode(NodeState::kReady, "b");
  TakeAway("a");
  Check();
  EXPECT_EQ(StateOf(gone), NodeState::kReady);
  Check();
  EXPECT_EQ(StateOf(gone), NodeState::kDeleting);
  EXPECT_EQ(StateOf(there), NodeState::kReady);
  EXPECT_EQ(log_.Count("The machine of a ready node is gone from provider cloud"), 1);
  EXPECT_TRUE(time.Run(store.nodes.TryLock(gone))) << "the lock was given up";
}

TEST_F(MissingMachinesTest, AMachineThatAppearsAgainIsNotMissing) {
  NodeId id = MakeNode(NodeState::kReady, "a");
  Instance machine = cloud->machines.begin()->second;
  for (int i = 0; i < 4; ++i) {
    TakeAway("a");
    Check();
    cloud->machines[boost::json::serialize(machine.external_id)] = machine;
    Check();
  }
  EXPECT_EQ(StateOf(id), NodeState::kReady);
}

TEST_F(MissingMachinesTest, AListThatFailedProvesNothing) {
  NodeId id = MakeNode(NodeState::kReady, "a");
  TakeAway("a");
  Check();
  cloud->list_fault = Error(Verdict::kRetry, "no answer");
  EXPECT_THROW(Check(), Error);
  EXPECT_THROW(Check(), Error);
  EXPECT_EQ(StateOf(id), NodeState::kReady);
  cloud->list_fault.reset();
  Check();
  Check();
  EXPECT_EQ(StateOf(id), NodeState::kDeleting);
}

TEST_F(MissingMachinesTest, NodesThatAreNotFreeAreLeftToTheirOwners) {
  NodeId locked = MakeNode(NodeState::kReady, "a");
  NodeId allocated = MakeNode(NodeState::kReady, "b", true);
  NodeId building = MakeNode(NodeState::kBuilding, "c");
  auto lock = time.Run(store.nodes.TryLock(locked));
  for (const char* id : {"a", "b", "c"}) TakeAway(id);
  for (int i = 0; i < 3; ++i) Check();
  EXPECT_EQ(StateOf(locked), NodeState::kReady);
  EXPECT_EQ(StateOf(allocated), NodeState::kReady);
  EXPECT_EQ(StateOf(building), NodeState::kBuilding);
  time.Run(lock->Unlock());
  Check();
  EXPECT_EQ(StateOf(locked), NodeState::kDeleting);
}

// TAKE-1
TEST_F(MissingMachinesTest, ForANodeInUseItIsLoggedAndNoted) {
  NodeId id = MakeNode(NodeState::kInUse, "a", true);
  TakeAway("a");
  for (int i = 0; i < 4; ++i) Check();
  Node record = time.Run(store.nodes.Read(id))->record;
  EXPECT_EQ(record.state, NodeState::kInUse);
  EXPECT_EQ(record.comment, "the cloud has no machine of this node any more");
  EXPECT_EQ(log_.Count("The machine of a node in use is gone from provider cloud"), 1) << "logged once";
}

TEST_F(MissingMachinesTest, ACommentIsNotReplaced) {
  NodeId id = MakeNode(NodeState::kInUse, "a", true);
  auto comment = [](Node& record) {
    record.comment = "of a person";
    return store::Change::kWrite;
  };
  time.Run(store.nodes.UpdateUnlocked(id, comment));
  TakeAway("a");
  for (int i = 0; i < 3; ++i) Check();
  EXPECT_EQ(time.Run(store.nodes.Read(id))->record.comment, "of a person");
}

TEST_F(MissingMachinesTest, ACommentAboutTheLaunchGivesWay) {
  NodeId id = MakeNode(NodeState::kInUse, "a", true);
  auto comment = [](Node& record) {
    record.comment = "Launched as m5.large spot; 0.04 per hour";
    return store::Change::kWrite;
  };
  time.Run(store.nodes.UpdateUnlocked(id, comment));
  TakeAway("a");
  for (int i = 0; i < 3; ++i) Check();
  EXPECT_EQ(time.Run(store.nodes.Read(id))->record.comment,
            "the cloud has no machine of this node any more. Launched as m5.large spot; 0.04 per hour");
}

TEST_F(MissingMachinesTest, IdsMayBeObjects) {
  boost::json::value one{{"server", "a"}, {"port", "p"}}, other{{"server", "b"}, {"port", "p"}};
  NodeId gone = MakeNode(NodeState::kReady, one);
  NodeId there = MakeNode(NodeState::kReady, other);
  TakeAway(one);
  Check();
  Check();
  EXPECT_EQ(StateOf(gone), NodeState::kDeleting);
  EXPECT_EQ(StateOf(there), NodeState::kReady);
}

TEST_F(MissingMachinesTest, AnAnnouncementIsFollowedAtOnce) {
  NodeId id = MakeNode(NodeState::kReady, "a");
  TakeAway("a");
  cloud->framework.MachinesTaken();
  time.Advance(seconds(1));
  EXPECT_EQ(StateOf(id), NodeState::kReady);
  time.Advance(seconds(15));
  EXPECT_EQ(StateOf(id), NodeState::kDeleting);
}

TEST_F(MissingMachinesTest, AnAnnouncedEndCountsAtOnce) {
  NodeId ready = MakeNode(NodeState::kReady, "a");
  NodeId used = MakeNode(NodeState::kInUse, "b", true);
  NodeId there = MakeNode(NodeState::kReady, "c");
  cloud->announced = {{"a", "marked-for-termination"}, {"b", "marked-for-termination"}, {"unknown", "x"}};
  Check();
  EXPECT_EQ(StateOf(ready), NodeState::kDeleting);
  EXPECT_EQ(StateOf(there), NodeState::kReady);
  EXPECT_EQ(
      log_.Count("[node_request: 100-0000000001] [node: " + used.str() +
                 "] The machine of a node in use is taken away from provider cloud: marked-for-termination"),
      1);
  Check();
  Check();
  EXPECT_EQ(log_.Count("The machine of a node in use"), 1) << "logged once";
  EXPECT_EQ(time.Run(store.nodes.Read(used))->record.comment,
            "the machine of this node is taken away from provider cloud: marked-for-termination");
  EXPECT_EQ(taken, (std::vector<std::string>{"ready", "in use"}));
}

TEST_F(MissingMachinesTest, WithoutAnnouncementsMissingMachinesAreFound) {
  NodeId gone = MakeNode(NodeState::kReady, "a");
  cloud->announcement_fault = Error(Verdict::kInvalid, "not allowed");
  TakeAway("a");
  Check();
  Check();
  EXPECT_EQ(StateOf(gone), NodeState::kDeleting);
  EXPECT_EQ(log_.Count("Which machines provider cloud will take away is not known: not allowed"), 1);
}

TEST_F(MissingMachinesTest, WithoutSupportOfTheAdapterNoNodeIsMissing) {
  cloud->lists_all_machines = false;
  NodeId id = MakeNode(NodeState::kReady, "a");
  TakeAway("a");
  for (int i = 0; i < 3; ++i) Check();
  EXPECT_EQ(StateOf(id), NodeState::kReady);
}

}  // namespace

}  // namespace nodepool::driver::cloud
