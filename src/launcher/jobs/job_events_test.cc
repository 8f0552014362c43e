#include "launcher/jobs/job_events.h"

#include "launcher/launcher_fixture_for_test.h"

namespace nodepool::launcher {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class JobEventsTest : public LauncherTest {
 protected:
  void AddRule(std::string name, std::optional<std::int64_t> limit) {
    time_.Run(client_store_->jobs.CreateRule({std::move(name), limit, {}}));
    time_.Advance(seconds(1));
  }
  static std::string Message(const std::string& node, const std::string& status = "FAILURE",
                             const std::string& job = "unit", const std::string& topic = "onFinalized") {
    return topic + R"( {"name": ")" + job + R"(", "build": {"node_name": ")" + node + R"(", "status": ")" +
           status + "\"}}";
  }
  // As over HTTP, in any launcher.
  JobDecision Decide(const NodeId& node, std::string status = "FAILURE", std::string job = "unit",
                     std::size_t launcher = 0) {
    JobEvent event{JobEvent::Topic::kFinalized, std::move(job), node.value, std::move(status)};
    return time_.Run(launchers_.at(launcher)->launcher->job_events().Decide(std::move(event)));
  }
  // As over ZeroMQ, where every launcher receives it; there are no real publishers.
  void Publish(const std::string& message) {
    for (auto& running : launchers_) {
      if (!running->is_stopped) running->launcher->job_events().Receive(message);
    }
  }
  void Listen() { config_->common.zmq_publishers = {"ipc:///nonexistent/publisher"}; }
  std::vector<std::string> HoldNotes() { return Children("/nodepool/jobs/holds"); }
  std::vector<NodeId> Held() { return NodesIn(NodeState::kHold); }

  log::Capture log_;
};

// D-67, operations.13.7: the client has the node; it becomes `hold` when it would be deleted.
TEST_F(JobEventsTest, ANodeIsHeldWhenItIsGivenBack) {
  AddRule("unit", 1);
  StartLauncher();
  auto nodes = Use({"small"});
  NodeId id = nodes[0].id();
  JobDecision decision = Decide(id);
  EXPECT_TRUE(decision.is_kept);
  EXPECT_EQ(decision.node, id);
  time_.Advance(minutes(2));
  EXPECT_EQ(Read(id)->state, NodeState::kInUse) << "its client has it";
  EXPECT_THAT(HoldNotes(), ::testing::ElementsAre(id.value));
  Return(nodes);
  ASSERT_TRUE(Await([&] { return Read(id)->state == NodeState::kHold; }));
  EXPECT_EQ(Read(id)->hold_job, "unit");
  EXPECT_EQ(Read(id)->comment, "Automatically held after failing unit");
  EXPECT_EQ(Read(id)->hold_expiration, std::nullopt) << "max-hold-age limits it";
  EXPECT_TRUE(Await([&] { return HoldNotes().empty() && !IsLocked(id); }));
  time_.Advance(minutes(10));
  EXPECT_EQ(Read(id)->state, NodeState::kHold);
  EXPECT_EQ(script().deletions, 0);
  EXPECT_FALSE(Decide(nodes.empty() ? NodeId("0000000999") : id).is_kept) << "no such node";
  EXPECT_TRUE(Decide(id).is_kept) << "held already";
  ChangeNode(id, [this](Node& node) { node.SetState(NodeState::kDeleting, time_.loop().Now()); });
  EXPECT_TRUE(Await([&] { return !Read(id); })) << "a person deletes it";
}

TEST_F(JobEventsTest, ANodeThatItsClientLostIsHeldAsWell) {
  AddRule("unit", 1);
  StartLauncher();
  auto nodes = Use({"small"});
  NodeId id = nodes[0].id();
  Decide(id);
  time_.Run(nodes[0].Unlock());
  EXPECT_TRUE(Await([&] { return Read(id) && Read(id)->state == NodeState::kHold; }));
}

TEST_F(JobEventsTest, HeldNodesAgeOut) {
  config_->common.max_hold_age = minutes(5);
  AddRule("unit", 1);
  StartLauncher();
  auto nodes = Use({"small"});
  NodeId id = nodes[0].id();
  Decide(id);
  Return(nodes);
  ASSERT_TRUE(Await([&] { return Read(id)->state == NodeState::kHold; }));
  EXPECT_TRUE(Await([&] { return !Read(id); }, minutes(7)));
  EXPECT_THAT(HoldNotes(), IsEmpty());
}

TEST_F(JobEventsTest, EventsThatHoldNoNode) {
  AddRule("unit", 1);
  AddRule("inert", std::nullopt);
  AddRule("none", 0);
  StartLauncher();
  auto nodes = Use({"small"});
  NodeId id = nodes[0].id();
  EXPECT_FALSE(Decide(id, "SUCCESS").is_kept);
  EXPECT_FALSE(Decide(id, "FAILURE", "inert").is_kept);
  EXPECT_FALSE(Decide(id, "FAILURE", "none").is_kept);
  EXPECT_FALSE(Decide(id, "FAILURE", "another").is_kept);
  NodeId free = AddNode(NodeState::kReady);
  time_.Advance(seconds(1));
  EXPECT_EQ(Decide(free).why, "the node is not in use");
  auto lock = time_.Run(client_store_->nodes.TryLock(free));
  SetState(*lock, NodeState::kDeleting);
  time_.Advance(seconds(1));
  EXPECT_EQ(Decide(free).why, "the node is not in use");
  time_.Run(lock->Unlock());
  EXPECT_THAT(HoldNotes(), IsEmpty());
  Return(nodes);
  EXPECT_TRUE(Await([&] { return Nodes().empty(); }));
}

// The nodes of a static host have its name, also one that was held for an earlier job.
TEST_F(JobEventsTest, OfNodesWithOneNameTheOneInUse) {
  AddRule("unit", 1);
  auto named = [](Node& node) { node.hostname = "worker.example.org"; };
  AddNode(NodeState::kHold, named);
  NodeId used = AddNode(NodeState::kReady, named);
  auto lock = time_.Run(client_store_->nodes.TryLock(used));
  SetState(*lock, NodeState::kInUse);
  StartLauncher();
  EXPECT_EQ(Decide(NodeId("worker.example.org")).node, used);
}

// operations.13.7: up to `hold_on_failure` nodes, those that are still in use among them.
TEST_F(JobEventsTest, NoMoreNodesThanTheRuleAllows) {
  AddRule("^unit", 2);
  StartLauncher();
  auto nodes = Use({"small", "small", "small", "small"});
  EXPECT_TRUE(Decide(nodes[0].id(), "FAILURE", "unit-a").is_kept);
  EXPECT_TRUE(Decide(nodes[0].id(), "FAILURE", "unit-a").is_kept) << "it counts once";
  EXPECT_TRUE(Decide(nodes[1].id(), "FAILURE", "unit-b").is_kept);
  EXPECT_THAT(Decide(nodes[2].id()).why, HasSubstr("enough nodes are held"));
  Return(nodes);
  ASSERT_TRUE(Await([&] { return Nodes().size() == 2 && Held().size() == 2; }));
  auto more = Use({"small"});
  EXPECT_FALSE(Decide(more[0].id()).is_kept);
  ChangeNode(Held()[0], [this](Node& node) { node.SetState(NodeState::kDeleting, time_.loop().Now()); });
  ASSERT_TRUE(Await([&] { return Nodes().size() == 2; }));
  EXPECT_TRUE(Decide(more[0].id()).is_kept) << "there is room again";
  Return(more);
  EXPECT_TRUE(Await([&] { return Held().size() == 2; }));
}

TEST_F(JobEventsTest, TwoAtTheSameMomentDoNotExceedTheLimit) {
  AddRule("unit", 1);
  StartLauncher("np01");
  StartLauncher("np02");
  auto nodes = Use({"small", "small", "small"});
  int kept = 0;
  int ended = 0;
  auto decide = [](JobEvents& events, NodeId id, int& kept, int& ended) -> Task<> {
    JobEvent event{JobEvent::Topic::kFinalized, "unit", id.value, "FAILURE"};
    JobDecision decision = co_await events.Decide(std::move(event));
    kept += decision.is_kept ? 1 : 0;
    ++ended;
  };
  TaskGroup tasks(time_.loop(), log::Logger("test"));
  for (std::size_t i = 0; i < 3; ++i) {
    tasks.Spawn("decide", decide(launchers_[i % 2]->launcher->job_events(), nodes[i].id(), kept, ended));
  }
  EXPECT_TRUE(Await([&] { return ended == 3; }));
  EXPECT_EQ(kept, 1);
  EXPECT_EQ(HoldNotes().size(), 1u);
  time_.Run(tasks.Stop());
}

// D-67: all launchers receive the event, one decides.
TEST_F(JobEventsTest, SeveralLaunchersHoldOnce) {
  AddRule("unit", 1);
  Listen();
  StartLauncher("np01");
  StartLauncher("np02");
  time_.Advance(seconds(1));
  auto nodes = Use({"small", "small"});
  Publish(Message(nodes[0].id().value));
  Publish(Message(nodes[1].id().value));
  Publish(Message(nodes[1].id().value, "SUCCESS"));
  ASSERT_TRUE(Await([&] { return HoldNotes().size() == 1; }));
  Return(nodes);
  EXPECT_TRUE(Await([&] { return Nodes().size() == 1 && Held().size() == 1; }));
  EXPECT_TRUE(Await([&] { return HoldNotes().empty(); }));
}

TEST_F(JobEventsTest, TheNextOneElectedKnowsEarlierEvents) {
  AddRule("unit", 5);
  Listen();
  Running& leader = StartLauncher("np01");
  time_.Advance(seconds(1));
  StartLauncher("np02");
  auto nodes = Use({"small"});
  zk_.Disconnect(*leader.client);
  Publish(Message(nodes[0].id().value));
  time_.Advance(seconds(5));
  EXPECT_THAT(HoldNotes(), IsEmpty()) << "the leader is away, no other launcher decides";
  zk_.ExpireSession(*leader.client);
  EXPECT_TRUE(Await([&] { return HoldNotes().size() == 1; }, seconds(50)));
  zk_.Reconnect(*leader.client);
  time_.Advance(seconds(10));
  Return(nodes);
  EXPECT_TRUE(Await([&] { return Held().size() == 1; }));
}

TEST_F(JobEventsTest, NoLauncherIsElectedWithoutPublishers) {
  StartLauncher();
  EXPECT_THAT(Children("/nodepool/locks"), IsEmpty());
  config_ = std::make_shared<driver::LoadedConfig>(*config_);
  Listen();
  launchers_[0]->launcher->Reconfigure(config_);
  EXPECT_TRUE(Await([&] { return Children("/nodepool/locks/job-events").size() == 1; }));
  config_ = std::make_shared<driver::LoadedConfig>(*config_);
  config_->common.zmq_publishers.clear();
  launchers_[0]->launcher->Reconfigure(config_);
  EXPECT_TRUE(Await([&] { return Children("/nodepool/locks/job-events").empty(); }));
}

TEST_F(JobEventsTest, HoldNotesOfVanishedNodesAreRemoved) {
  AddRule("unit", 5);
  Running& running = StartLauncher();
  auto nodes = Use({"small"});
  NodeId id = nodes[0].id();
  Decide(id);
  time_.Run(nodes[0].Remove());
  EXPECT_TRUE(Await([&] { return HoldNotes().empty(); }));
  StopLauncher(running);
  Put("/nodepool/jobs/holds/0000004711", ToJson(HoldNote{"unit", "x", {}, {}}));
  StartLauncher("np02");
  EXPECT_TRUE(Await([&] { return HoldNotes().empty(); })) << "also those from before the start";
}

TEST_F(JobEventsTest, ADeletedNodeIsRemovedThoughItHasAHoldNote) {
  AddRule("unit", 5);
  StartLauncher();
  auto nodes = Use({"small"});
  Decide(nodes[0].id());
  SetState(nodes[0], NodeState::kDeleting);
  time_.Run(nodes[0].Unlock());
  EXPECT_TRUE(Await([&] { return Nodes().empty() && HoldNotes().empty(); }));
}

TEST_F(JobEventsTest, BadMessagesAreLoggedAtALimitedRate) {
  Listen();
  StartLauncher();
  for (int i = 0; i < 1000; ++i) Publish("onFinalized {");
  for (int i = 0; i < 3000; ++i) Publish(Message("0000000001"));
  EXPECT_EQ(log_.Count("Exception handling job:"), 1);
  time_.Advance(minutes(2));
  Publish("unheard");
  EXPECT_EQ(log_.Count("Exception handling job:"), 2);
  EXPECT_EQ(log_.Count("more since the last of these lines"), 1);
}

}  // namespace
}  // namespace nodepool::launcher
