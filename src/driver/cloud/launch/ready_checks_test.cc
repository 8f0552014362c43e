#include "driver/cloud/launch/ready_checks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/log/logging.h"
#include "base/scope_exit.h"
#include "driver/cloud/cloud_provider_fixture_for_test.h"
#include "process/command.h"

namespace nodepool::driver::cloud {

// Access of ready nodes that does not last.

namespace {

class AccessRenewalTest : public ProviderTest {
 protected:
  NodeId MakeNode(NodeState state, bool is_allocated = false) {
    Node record;
    record.SetState(state, time.loop().Now());
    record.provider = config->name;
    record.pool = PoolName("main");
    record.type = {LabelName("small")};
    record.external_id = "a";
    record.connection_port = boost::json::object{{"token", "old"}};
    if (is_allocated) record.allocated_to = RequestId("100-0000000001");
    NodeId id = time.Run(store.nodes.Create(record));
    time.RunUntil([&] { return nodes.Find(id) != nullptr; });
    return id;
  }
  Node RecordOf(const NodeId& id) { return time.Run(store.nodes.Read(id))->record; }
  std::string TokenOf(const NodeId& id) {
    return boost::json::serialize(RecordOf(id).connection_port.value().as_object().at("token"));
  }
  void Sweep() { time.Run(provider->CleanupLeakedResources()); }

  log::Capture log_;
};

// K8S-89
TEST_F(AccessRenewalTest, OnlyReadyNodesWithoutARequestGetNewAccess) {
  StartProvider();
  cloud->resources = {};
  NodeId free = MakeNode(NodeState::kReady);
  NodeId taken = MakeNode(NodeState::kReady, true);
  NodeId in_use = MakeNode(NodeState::kInUse);
  Sweep();
  EXPECT_EQ(TokenOf(free), "\"old\"") << "it lasts";
  cloud->access_state = AccessState::kRenewalDue;
  Sweep();
  EXPECT_EQ(TokenOf(free), "\"renewed\"");
  EXPECT_EQ(RecordOf(free).driver_data.value(), "a");
  EXPECT_EQ(RecordOf(free).state, NodeState::kReady);
  EXPECT_EQ(TokenOf(taken), "\"old\"");
  EXPECT_EQ(TokenOf(in_use), "\"old\"");
  EXPECT_TRUE(time.Run(store.nodes.TryLock(free))) << "the lock was given up";
}

// K8S-89: the client has it now, whatever its state.
TEST_F(AccessRenewalTest, ALockedNodeIsLeftAlone) {
  StartProvider();
  NodeId id = MakeNode(NodeState::kReady);
  auto lock = time.Run(store.nodes.TryLock(id));
  cloud->access_state = AccessState::kEnds;
  Sweep();
  EXPECT_EQ(TokenOf(id), "\"old\"");
  EXPECT_EQ(RecordOf(id).state, NodeState::kReady);
}

// K8S-90
TEST_F(AccessRenewalTest, WhatCannotBeRenewedIsReportedOnceAndDeletedAtLast) {
  StartProvider();
  NodeId id = MakeNode(NodeState::kReady);
  cloud->access_state = AccessState::kRenewalDue;
  cloud->renewal_fault = Error(Verdict::kRetry, "the server is away");
  Sweep();
  Sweep();
  EXPECT_EQ(RecordOf(id).state, NodeState::kReady);
  EXPECT_EQ(log_.Count("could not be renewed; it is tried again: the server is away"), 1);
  cloud->access_state = AccessState::kEnds;
  Sweep();
  EXPECT_EQ(RecordOf(id).state, NodeState::kDeleting);
}

// Ready nodes that are looked at again.

using std::chrono::seconds;
using ::testing::Contains;
using ::testing::Pair;

// Ends each program as it is told to, after a second.
class ScriptedRunner : public process::Runner {
 public:
  explicit ScriptedRunner(Loop& loop) : loop_(loop) {}
  Task<process::Exit> Run(process::Command command) override {
    commands.push_back(std::move(command));
    most_at_once = std::max(most_at_once, ++at_once_);
    ScopeExit ended([this] { --at_once_; });
    co_await loop_.SleepFor(seconds(1));
    if (is_missing) throw Error(Verdict::kInvalid, "there is no program check-node");
    co_return exit;
  }
  process::Exit exit;
  bool is_missing = false;
  std::vector<process::Command> commands;
  int most_at_once = 0;

 private:
  Loop& loop_;
  int at_once_ = 0;
};

class ReadyChecksTest : public ProviderTest {
 protected:
  void SetUp() override {
    ProviderTest::SetUp();
    pool->recheck_interval = seconds(60);
    runner = &programs;
    StartProvider();
  }
  NodeId MakeNode(const std::string& address, NodeState state = NodeState::kReady) {
    Node record;
    record.SetState(state, time.loop().Now());
    record.provider = config->name;
    record.pool = PoolName("main");
    record.type = {LabelName("small")};
    record.external_id = address;
    record.interface_ip = address;
    record.host_keys = {"ssh-rsa BBBB", "ssh-ed25519 AAAA"};
    NodeId id = time.Run(store.nodes.Create(record));
    time.RunUntil([&] { return nodes.Find(id) != nullptr; });
    return id;
  }
  NodeState StateOf(const NodeId& id) { return *time.Run(store.nodes.Read(id))->record.state; }

  // Has nodes checked that way from now on.
  void CheckBy(const std::string& how) { pool->recheck = how; }

  ScriptedRunner programs{time.loop()};
  log::Capture log_;
};

// BB-45
TEST_F(ReadyChecksTest, ANodeThatDoesNotAnswerThreeTimesIsReplaced) {
  NodeId sick = MakeNode("192.0.2.1"), well = MakeNode("192.0.2.2");
  silent_hosts = {"192.0.2.1"};
  time.Advance(seconds(60 + 15 + 5 + 15 + 5));
  EXPECT_EQ(StateOf(sick), NodeState::kReady);
  time.Advance(seconds(20));
  EXPECT_EQ(StateOf(sick), NodeState::kDeleting);
  EXPECT_EQ(StateOf(well), NodeState::kReady);
  EXPECT_EQ(failed_ready_nodes, 1);
  EXPECT_EQ(
      log_.Count("The ready node does not answer at 192.0.2.1 port 22: timeout connecting: it is deleted"),
      1);
  EXPECT_TRUE(time.Run(store.nodes.TryLock(sick))) << "the lock was given up";
}

// BB-45
TEST_F(ReadyChecksTest, ANodeThatAnswersAgainStays) {
  NodeId node = MakeNode("192.0.2.1");
  failing_scans = 2;
  time.Advance(seconds(120));
  EXPECT_EQ(StateOf(node), NodeState::kReady);
  EXPECT_EQ(failed_ready_nodes, 0);
}

// BB-45
TEST_F(ReadyChecksTest, ANodeWithOtherHostKeysIsReplaced) {
  NodeId node = MakeNode("192.0.2.1");
  host_key = "ssh-ed25519 CCCC";
  time.Advance(seconds(80));
  EXPECT_EQ(StateOf(node), NodeState::kDeleting);
  EXPECT_EQ(log_.Count("shows other host keys than its own at 192.0.2.1 port 22"), 1);
}

// BB-45
TEST_F(ReadyChecksTest, WithTcpHostKeysDoNotMatter) {
  CheckBy("tcp");
  NodeId node = MakeNode("192.0.2.1");
  host_key = "ssh-ed25519 CCCC";
  time.Advance(seconds(300));
  EXPECT_EQ(StateOf(node), NodeState::kReady);
}

// BB-48
TEST_F(ReadyChecksTest, ACommandThatFailsThreeTimesCondemnsANode) {
  CheckBy("check-node --with 'two words'");
  NodeId node = MakeNode("192.0.2.1");
  programs.exit = {3, false, "one\nthe disk is full\n\n"};
  time.Advance(seconds(80));
  EXPECT_EQ(StateOf(node), NodeState::kDeleting);
  EXPECT_EQ(scans, 0);
  EXPECT_EQ(last_failure_reason, "command");
  EXPECT_EQ(log_.Count("The ready node does not stand its check, which ended with 3: the disk is full: it is "
                       "deleted"),
            1);
  ASSERT_EQ(programs.commands.size(), 3u);
  const process::Command& command = programs.commands.front();
  EXPECT_THAT(command.argv, ::testing::ElementsAre("check-node", "--with", "two words"));
  EXPECT_THAT(command.environment, Contains(Pair("NODEPOOL_HOST", "192.0.2.1")));
  EXPECT_THAT(command.environment, Contains(Pair("NODEPOOL_PORT", "22")));
  EXPECT_THAT(command.environment, Contains(Pair("NODEPOOL_NODE", node.value)));
  EXPECT_THAT(command.environment, Contains(Pair("NODEPOOL_HOST_KEYS", "ssh-rsa BBBB\nssh-ed25519 AAAA")));
  EXPECT_EQ(command.timeout, seconds(60));
}

// BB-48
TEST_F(ReadyChecksTest, ACommandThatIsNotThereCondemnsNobody) {
  CheckBy("check-node");
  programs.is_missing = true;
  NodeId node = MakeNode("192.0.2.1");
  time.Advance(std::chrono::minutes(10));
  EXPECT_EQ(StateOf(node), NodeState::kReady);
  EXPECT_EQ(log_.Count("Ready nodes are not checked: there is no program check-node"), 1) << "once";
}

// BB-48
TEST_F(ReadyChecksTest, FiveCommandsRunAtATimeAndARequestTakesANodeMeanwhile) {
  CheckBy("check-node");
  programs.exit = {1, false, ""};
  std::vector<NodeId> nodes;
  for (int i = 0; i < 20; ++i) nodes.push_back(MakeNode(fmt::format("192.0.2.{}", i)));
  time.Advance(seconds(61));
  std::optional<store::LockedNode> taken = time.Run(store.nodes.TryLock(nodes.front()));
  ASSERT_TRUE(taken) << "a request gets the lock while the command runs";
  time.Advance(seconds(60));
  EXPECT_EQ(programs.most_at_once, 5);
  EXPECT_EQ(StateOf(nodes.back()), NodeState::kReady) << "where all fail the command is doubted";
  time.Run(taken->Unlock());
}

// BB-46
TEST_F(ReadyChecksTest, WhereMostFailTheWayToThemIsDoubtedAndNoneIsDeleted) {
  NodeId first = MakeNode("192.0.2.1"), second = MakeNode("192.0.2.2"), third = MakeNode("192.0.2.3");
  silent_hosts = {"192.0.2.1", "192.0.2.2"};
  time.Advance(std::chrono::minutes(10));
  EXPECT_EQ(StateOf(first), NodeState::kReady);
  EXPECT_EQ(log_.Count("2 of 3 ready nodes that were checked fail, so none is deleted"), 1);
  silent_hosts = {"192.0.2.1"};
  time.Advance(std::chrono::minutes(3));
  EXPECT_EQ(StateOf(first), NodeState::kDeleting);
  EXPECT_EQ(StateOf(second), NodeState::kReady);
  EXPECT_EQ(StateOf(third), NodeState::kReady);
}

// BB-47
TEST_F(ReadyChecksTest, ACheckHoldsNoLockAndLeavesANodeThatARequestHasTaken) {
  NodeId id = MakeNode("192.0.2.1");
  silent_hosts = {"192.0.2.1"};
  time.Advance(seconds(65));
  std::optional<store::LockedNode> taken = time.Run(store.nodes.TryLock(id));
  ASSERT_TRUE(taken) << "a request gets the lock while the node is looked at";
  time.Advance(seconds(120));
  EXPECT_EQ(StateOf(id), NodeState::kReady);
  time.Run(taken->Unlock());
}

// BB-47: silent nodes leave places for the scans of launches, and those behind them are looked at all the
// same.
TEST_F(ReadyChecksTest, ManySilentNodesNeitherTakeAllPlacesNorCondemnTheOthers) {
  std::vector<NodeId> well;
  for (int i = 0; i < 40; ++i) {
    MakeNode(fmt::format("192.0.2.{}", i));
    silent_hosts.insert(fmt::format("192.0.2.{}", i));
  }
  for (int i = 0; i < 60; ++i) well.push_back(MakeNode(fmt::format("198.51.100.{}", i)));
  time.Advance(std::chrono::minutes(5));
  EXPECT_EQ(most_scans_at_once, 20);
  EXPECT_EQ(failed_ready_nodes, 40);
  for (const NodeId& id : well) EXPECT_EQ(StateOf(id), NodeState::kReady);
}

// BB-47
TEST_F(ReadyChecksTest, OnlyFreeReadyNodesAreLookedAtAndNoneWithoutAnInterval) {
  MakeNode("192.0.2.1", NodeState::kInUse);
  time.Advance(seconds(130));
  EXPECT_EQ(scans, 0);
  NodeId ready = MakeNode("192.0.2.2");
  time.Advance(seconds(130));
  EXPECT_THAT(scans, ::testing::AllOf(::testing::Ge(1), ::testing::Le(2))) << "once in each interval";
}

}  // namespace

}  // namespace nodepool::driver::cloud
