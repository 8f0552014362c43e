#include "launcher/launcher_fixture_for_test.h"
#include "model/decline_reasons.h"

namespace nodepool::launcher {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ProviderPauseTest : public LauncherTest {
 protected:
  void Pause(bool is_drained = false, const std::string& provider = "cloud") {
    ProviderPause pause{"upgrade", is_drained, "alice", time_.loop().Now(), {}};
    time_.Run(client_store_->provider_pauses.Pause(ProviderName(provider), std::move(pause)));
    time_.Advance(seconds(1));
  }
  void Unpause() {
    time_.Run(client_store_->provider_pauses.Unpause(ProviderName("cloud")));
    time_.Advance(seconds(1));
  }

  log::Capture log_;
};

// ACT-3
TEST_F(ProviderPauseTest, APausedProviderDeclinesAsWithMaxServersZero) {
  StartLauncher();
  Pause();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFailed));
  EXPECT_THAT(DeclineReasons(*Read(id)), ElementsAre("cloud main: the provider is paused by alice: upgrade"));
  EXPECT_EQ(Read(id)->declined_by.size(), 1u);
  Unpause();
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFulfilled));
  EXPECT_EQ(log_.Count("Provider cloud is paused by alice: upgrade"), 1);
  EXPECT_EQ(log_.Count("Provider cloud is not paused any more"), 1);
}

// ACT-3
TEST_F(ProviderPauseTest, AnotherProviderServesTheRequest) {
  AddPool("other", "main", {"small"}).priority = 200;
  StartLauncher();
  Pause();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(NodeOf(id).provider, ProviderName("other"));
}

// ACT-3
TEST_F(ProviderPauseTest, AReadyNodeIsNotGivenOutAndStays) {
  StartLauncher();
  NodeId node = AddNode(NodeState::kReady);
  Pause();
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFailed));
  time_.Advance(minutes(5));
  EXPECT_TRUE(Read(node)->is_free());
}

// ACT-4
TEST_F(ProviderPauseTest, LaunchesUnderWayFinish) {
  script().launch_time = seconds(30);
  StartLauncher();
  RequestId id = Request({"small", "large"});
  ASSERT_TRUE(Await([&] { return script().launches == 2; }));
  Pause();
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  auto nodes = Take(id);
  Return(nodes);
  EXPECT_TRUE(Await([&] { return Nodes().empty(); })) << "used nodes are deleted";
}

// ACT-4
TEST_F(ProviderPauseTest, WhatWaitsForCapacityIsDeclined) {
  AddPool("cloud", "main", {"small"}).max_servers = 1;
  StartLauncher();
  auto nodes = Use({"small"});
  RequestId waiting = Request({"small"});
  ASSERT_TRUE(AwaitState(waiting, RequestState::kPending));
  Pause();
  EXPECT_TRUE(AwaitState(waiting, RequestState::kFailed, seconds(5)));
  EXPECT_EQ(Read(nodes.at(0).id())->state, NodeState::kInUse);
  Return(nodes);
}

// ACT-5
TEST_F(ProviderPauseTest, NothingIsLaunchedForMinReady) {
  label_config("small").min_ready = 2;
  Pause();
  Running& running = StartLauncher();
  running.recorder->ClearCalls();
  time_.Advance(minutes(10));
  EXPECT_EQ(script().launches, 0);
  int writes = 0;
  for (const auto& call : running.recorder->calls()) writes += call.is_write ? 1 : 0;
  EXPECT_EQ(writes, 0) << "no request is made only to be declined";
  Unpause();
  EXPECT_TRUE(Await([&] { return FreeNodes() == 2; }, seconds(10)));
}

// ACT-1, ACT-2
TEST_F(ProviderPauseTest, EveryLauncherHeedsItAlsoAfterARestart) {
  Pause();
  StartLauncher("np01");
  Running& other = StartLauncher("np02");
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFailed));
  StopLauncher(other);
  StartLauncher("np02");
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFailed));
  Put("/nodepool/paused-providers/cloud", "what is this");
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFailed));
  EXPECT_EQ(script().launches, 0);
}

// ACT-6
TEST_F(ProviderPauseTest, ADrainDeletesUnusedNodesOnly) {
  script().launch_time = seconds(30);
  label_config("small").min_ready = 2;
  StartLauncher();
  ASSERT_TRUE(Await([&] { return FreeNodes() == 2; }));
  auto used = Use({"large"});
  NodeId held = AddNode(NodeState::kHold);
  NodeId locked = AddNode(NodeState::kReady);
  auto lock = time_.Run(client_store_->nodes.TryLock(locked));
  RequestId under_way = Request({"large"});
  ASSERT_TRUE(Await([&] { return script().launches == 4; }));
  Pause(true);
  EXPECT_TRUE(Await([&] { return NodesIn(NodeState::kReady) == std::vector{locked}; }, seconds(10)));
  ASSERT_TRUE(AwaitState(under_way, RequestState::kFulfilled));
  time_.Run(lock->Unlock());
  EXPECT_TRUE(Await([&] { return !Read(locked); }, seconds(10))) << "once nobody has it";
  auto fulfilled = Take(under_way);
  EXPECT_THAT(fulfilled, SizeIs(1));
  time_.Advance(minutes(5));
  EXPECT_EQ(Read(held)->state, NodeState::kHold);
  EXPECT_EQ(Read(used.at(0).id())->state, NodeState::kInUse);
  EXPECT_THAT(NodesIn(NodeState::kReady), IsEmpty());
  Return(used);
  Return(fulfilled);
}

// ACT-6
TEST_F(ProviderPauseTest, ADrainDeletesWhatBecomesReadyLater) {
  script().launch_time = seconds(30);
  label_config("small").min_ready = 1;
  StartLauncher();
  ASSERT_TRUE(Await([&] { return script().launches == 1; }));
  Pause(true);
  EXPECT_EQ(script().deleted.size(), 0u);
  EXPECT_TRUE(Await([&] { return script().deleted.size() == 1; }, minutes(1)));
  EXPECT_THAT(NodesIn(NodeState::kReady), IsEmpty());
  time_.Advance(minutes(5));
  EXPECT_EQ(script().launches, 1);
}

// ACT-6
TEST_F(ProviderPauseTest, ADrainLeavesExistingMachines) {
  script().launches_nodes = false;
  StartLauncher();
  NodeId node = AddNode(NodeState::kReady);
  Pause(true);
  time_.Advance(minutes(5));
  EXPECT_EQ(Read(node)->state, NodeState::kReady);
}

// ACT-7
TEST_F(ProviderPauseTest, ItIsShown) {
  Running& running = StartLauncher();
  std::vector<ProviderStatus> providers = running.launcher->Providers();
  EXPECT_FALSE(providers.at(0).pause);
  EXPECT_TRUE(providers.at(0).pools.at(0).labels.at(0).is_available);
  Pause(true);
  providers = running.launcher->Providers();
  ASSERT_TRUE(providers.at(0).pause);
  EXPECT_TRUE(providers.at(0).pause->is_drained);
  EXPECT_FALSE(providers.at(0).pools.at(0).labels.at(0).is_available);
  Pause(false, "no-longer-configured");
  EXPECT_EQ(running.launcher->records().pauses.all().size(), 2u) << "harmless, and listed";
  EXPECT_TRUE(running.launcher->is_ready());
}

}  // namespace
}  // namespace nodepool::launcher
