#include "launcher/launcher_fixture_for_test.h"

namespace nodepool::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class SeveralLaunchersTest : public LauncherTest {
 protected:
  void StartTogether(const std::vector<std::string>& hostnames) {
    TaskGroup starting(time_.loop(), log::Logger("test.start"));
    for (const std::string& hostname : hostnames)
      starting.Spawn("start " + hostname, AddLauncher(hostname).launcher->Start());
    time_.Run(starting.Join());
  }
};

TEST_F(SeveralLaunchersTest, ThatStartTogetherMakeNoSurplusMinReadyNodes) {  // LA-30
  for (Duration latency : {milliseconds(0), milliseconds(1), milliseconds(20)}) {
    zk_.SetLatency(latency);
    label_config("small").min_ready = 2;
    label_config("large").min_ready = 1;
    script().launches = 0;
    StartTogether({"np01", "np02", "np03"});
    ASSERT_TRUE(Await([&] { return FreeNodes() == 3; }));
    time_.Advance(std::chrono::minutes(5));
    EXPECT_EQ(script().launches, 3);
    EXPECT_EQ(Nodes().size(), 3u);
    for (auto& launcher : launchers_) StopLauncher(*launcher);
    for (const NodeId& id : Nodes()) time_.Run(zk::DeleteRecursive(*client_, "/nodepool/nodes/" + id.value));
  }
}

TEST_F(SeveralLaunchersTest, ReplaceAMinReadyNodeOnce) {  // LA-30
  zk_.SetLatency(milliseconds(5));
  label_config("small").min_ready = 2;
  StartTogether({"np01", "np02", "np03"});
  ASSERT_TRUE(Await([&] { return FreeNodes() == 2; }));
  for (int used = 1; used <= 5; ++used) {
    auto nodes = Use({"small"});
    EXPECT_TRUE(Await([&] { return FreeNodes() == 2; }));
    time_.Advance(seconds(10));
    EXPECT_EQ(script().launches, 2 + used);
    Return(nodes);
  }
}

TEST_F(SeveralLaunchersTest, AnotherLauncherTakesOverFromADeadOne) {  // coordination.17.39
  script().launch_time = seconds(20);
  Running& dead = StartLauncher("np01");
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kPending));
  StartLauncher("np02");
  zk_.Disconnect(*dead.client);
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled, std::chrono::minutes(5)));
  EXPECT_THAT(NodeOf(id).launcher.value_or(""), ::testing::StartsWith("np02"));
  zk_.Reconnect(*dead.client);
  EXPECT_TRUE(Await([&] { return Nodes().size() == 1; }));
}

TEST_F(SeveralLaunchersTest, NeverServeARequestTwice) {
  StartLauncher("np01");
  StartLauncher("np02");
  std::vector<RequestId> ids;
  for (int i = 0; i < 50; ++i) ids.push_back(Request({"small"}));
  for (const RequestId& id : ids) ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  std::set<NodeId> nodes;
  for (const RequestId& id : ids) nodes.insert(Read(id)->nodes[0]);
  EXPECT_EQ(nodes.size(), ids.size());
  EXPECT_EQ(Nodes().size(), ids.size()) << "nothing was launched twice";
}

TEST_F(SeveralLaunchersTest, SuccessorServesWhatItsPredecessorDeclined) {  // BB-22
  AddForeignPool();                                                        // keeps the request from failing
  script().not_ready = {LabelName("small")};
  Running& first = StartLauncher("np01");
  RequestId id = Request({"small"});
  ASSERT_TRUE(Await([&] { return Read(id)->declined_by.size() == 1; }));
  script().not_ready.clear();
  time_.Advance(seconds(60));
  EXPECT_EQ(Read(id)->state, RequestState::kRequested) << "a decline is for good";
  StopLauncher(first);
  StartLauncher("np01");
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(Read(id)->declined_by.size(), 1u);
}

TEST_F(SeveralLaunchersTest, YieldToThePreferredPoolOfAnother) {  // LA-92
  driver::PoolConfig& high = AddPool("high", "main", {"small"});
  high.max_servers = 1;
  high.priority = 1;
  auto all = config_->providers;
  config_->providers = {{ProviderName("high"), all.at(ProviderName("high"))}};
  StartLauncher("np01");
  config_ = std::make_shared<driver::LoadedConfig>(*config_);
  config_->providers = {{ProviderName("cloud"), all.at(ProviderName("cloud"))}};
  StartLauncher("np02");
  auto nodes = Use({"small"});
  EXPECT_EQ(nodes.at(0).record().provider, ProviderName("high"));
  RequestId second = Request({"small"});
  ASSERT_TRUE(AwaitState(second, RequestState::kPending));
  ASSERT_TRUE(Await([&] { return IsPaused(); }));
  RequestId third = Request({"small"});
  ASSERT_TRUE(AwaitState(third, RequestState::kFulfilled));
  EXPECT_EQ(NodeOf(third).provider, ProviderName("cloud"));
  EXPECT_EQ(Read(second)->state, RequestState::kPending);
  Return(nodes);
  EXPECT_TRUE(AwaitState(second, RequestState::kFulfilled));
}

TEST_F(SeveralLaunchersTest, EachDeletesOnlyNodesOfItsProviders) {
  AddPool("other", "main", {"large"});
  auto all = config_->providers;
  config_->providers.erase(ProviderName("other"));
  StartLauncher("np01");
  NodeId foreign = AddNode(NodeState::kUsed, [](Node& node) { node.provider = ProviderName("other"); });
  time_.Advance(seconds(120));
  EXPECT_TRUE(Read(foreign));
  config_ = std::make_shared<driver::LoadedConfig>(*config_);
  config_->providers = {{ProviderName("other"), all.at(ProviderName("other"))}};
  StartLauncher("np02");
  EXPECT_TRUE(Await([&] { return !Read(foreign); }));
}

}  // namespace
}  // namespace nodepool::launcher
