#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include "launcher/cloud_fixture_for_test.h"
#include "launcher/launcher_fixture_for_test.h"
#include "launcher/view.h"

namespace nodepool::launcher {

namespace {

namespace json = boost::json;
using std::chrono::milliseconds;
using std::chrono::minutes;
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

// What a launcher leaves to other launchers (operations.md 13.1).
class DutiesTest : public LauncherTest {
 protected:
  std::vector<Component> Pools() {
    std::vector<Component> pools;
    for (const std::string& name : Children("/nodepool/components/pool")) {
      auto read = time_.Run(client_->Get("/nodepool/components/pool/" + name));
      if (read) pools.push_back(*ParseComponent(ComponentKind::kPool, read->data));
    }
    return pools;
  }
};

// operations.13.1
TEST_F(DutiesTest, WithoutLaunchesRequestsGetWhatIsReadyAndOthersWait) {
  label_config("small").min_ready = 1;
  duties_.launches = false;
  StartLauncher();
  NodeId free = AddNode(NodeState::kReady);
  RequestId served = Request({"small"});
  EXPECT_TRUE(AwaitState(served, RequestState::kFulfilled));
  EXPECT_EQ(NodesOf(served), std::vector<NodeId>{free});
  RequestId waits = Request({"small"});
  time_.Advance(minutes(3));
  EXPECT_EQ(Read(waits)->state, RequestState::kRequested);
  EXPECT_THAT(Read(waits)->declined_by, ::testing::IsEmpty()) << "another launcher may launch for it";
  EXPECT_EQ(Nodes().size(), 1u) << "min-ready nodes are not launched either";
}

// operations.13.1
TEST_F(DutiesTest, WithoutLaunchesNoOtherLauncherLeavesARequestToIt) {
  duties_.launches = false;
  StartLauncher("idle");
  for (const Component& pool : Pools()) EXPECT_THAT(pool.supported_labels, ::testing::IsEmpty());
  // As its pool, it would be asked first.
  RequestId id = Request({"small"}, [](NodeRequest& request) { request.provider = ProviderName("cloud"); });
  time_.Advance(seconds(10));
  EXPECT_EQ(Read(id)->state, RequestState::kRequested);
  duties_.launches = true;
  StartLauncher("np02");
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
}

// operations.13.1
TEST_F(DutiesTest, WithoutDeletesEverythingStaysUntilAnotherLauncherComes) {
  config_->common.labels.at(LabelName("small")).max_ready_age = minutes(1);
  config_->common.zmq_publishers = {"ipc:///nonexistent/publisher"};
  duties_.deletes = false;
  StartLauncher();
  auto nodes = Use({"small"});
  NodeId used = nodes.at(0).id();
  Return(nodes);
  NodeId old = AddNode(NodeState::kReady);
  NodeId lost = AddNode(NodeState::kInit);
  time_.Advance(minutes(10));
  EXPECT_EQ(Read(used)->state, NodeState::kUsed);
  EXPECT_EQ(Read(old)->state, NodeState::kReady);
  EXPECT_EQ(Read(lost)->state, NodeState::kInit);
  EXPECT_THAT(Children("/nodepool/locks/job-events"), ::testing::IsEmpty()) << "it hears no publisher";
  duties_.deletes = true;
  StartLauncher("np02");
  EXPECT_TRUE(Await([&] { return Nodes().empty(); }));
}

// operations.13.1
TEST_F(DutiesTest, WithoutDeletesNoNodeIsDeletedForCapacity) {
  AddPool("cloud", "main", {"small", "large"}).max_servers = 1;
  duties_.deletes = false;
  StartLauncher();
  NodeId idle = AddNode(NodeState::kReady);
  time_.Advance(seconds(1));
  RequestId id = Request({"large"});
  EXPECT_TRUE(AwaitState(id, RequestState::kPending));
  time_.Advance(minutes(10));
  EXPECT_EQ(Read(idle)->state, NodeState::kReady);
}

TEST(PeerAnswerTest, ReasonsById) {
  auto answer = ReadPeerAnswer(
      R"({"reasons":[{"id":"200-0000000001","code":"capacity","provider":"ovh","pool":"main",)"
      R"("text":"ovh main uses 2 of 2 instances"},{"id":"200-0000000002","code":"tenant-limit",)"
      R"("provider":null,"pool":null,"text":"tenant t"}],"is_complete":true})",
      "np02");
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->size(), 2u);
  EXPECT_EQ(
      answer->at(RequestId("200-0000000001")),
      (sched::RequestReason{
          "capacity", {ProviderName("ovh"), PoolName("main")}, "ovh main uses 2 of 2 instances", "np02"}));
  EXPECT_EQ(answer->at(RequestId("200-0000000002")).pool, PoolKey());
}

TEST(PeerAnswerTest, WhatIsNoAnswerIsRefused) {
  for (const char* text : {"", "{}", "[]", R"({"reasons":7})", R"({"reasons":[7]})"})
    EXPECT_FALSE(ReadPeerAnswer(text, "np02")) << text;
}

TEST(PeerAnswerTest, AHostileAnswerIsBounded) {
  std::string text = R"({"reasons":[)";
  for (int i = 0; i < 2'000; ++i) {
    text += fmt::format(R"({}{{"id":"200-{:010}","code":"capacity","text":"\u001b[2J{}"}})",
                        i == 0 ? "" : ",", i, std::string(i == 0 ? 100'000 : 10, 'x'));
  }
  auto answer = ReadPeerAnswer(text + "]}", "np02");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->size(), kMaxPeerReasons);
  const std::string& first = answer->begin()->second.text;
  EXPECT_LT(first.size(), 1'100u);
  EXPECT_EQ(first.find('\x1b'), std::string::npos);
}

// Two launchers with a provider each, which ask each other as web servers let them.
class PeerReasonsTest : public LauncherTest {
 protected:
  void SetUp() override {
    LauncherTest::SetUp();
    config_->providers.clear();
    AddPool("first", "main", {"large"});
    np01_ = &Start("np01");
    config_ = std::make_shared<driver::LoadedConfig>(*config_);
    config_->providers.clear();
    AddPool("second", "main", {"small"}).max_servers = 1;
    np02_ = &Start("np02");
  }

  Running& Start(const std::string& hostname) {
    Running& running = AddLauncher(hostname);
    running.launcher->HasWebServer({8005, false}, [this](std::string host, WebServer, std::string target) {
      return Answer(*this, std::move(host), std::move(target));
    });
    time_.Run(running.launcher->Start());
    return running;
  }

  static Task<std::string> Answer(PeerReasonsTest& test, std::string hostname, std::string target) {
    EXPECT_EQ(target, kReasonsTarget);
    ++test.questions_;
    if (test.is_silent_) throw Error(Verdict::kTimedOut, "port 8005 does not answer");
    if (test.is_slow_) co_await test.time_.loop().SleepFor(std::chrono::hours(1));
    json::array reasons;
    Running& asked = hostname == "np01" ? *test.np01_ : *test.np02_;
    asked.launcher->ForEachReason([&](const ReportedReason& reported) {
      const sched::RequestReason& reason = reported.reason;
      reasons.push_back(json::object{{"id", reported.id.value},
                                     {"code", reason.code},
                                     {"provider", reason.pool.provider.value},
                                     {"pool", reason.pool.pool.value},
                                     {"text", reason.text}});
      return true;
    });
    co_return json::serialize(json::object{{"reasons", std::move(reasons)}});
  }

  std::optional<sched::RequestReason> ReasonAt(Running& running, const RequestId& id) {
    return running.launcher->FindRequest(id)->reason;
  }
  // What np01 says of the request once it has asked.
  std::string TextAtFirst(const RequestId& id) {
    ReasonAt(*np01_, id);
    time_.Advance(seconds(4));
    std::optional<sched::RequestReason> reason = ReasonAt(*np01_, id);
    return reason ? reason->launcher + ": " + reason->text : "";
  }

  Running* np01_ = nullptr;
  Running* np02_ = nullptr;
  int questions_ = 0;
  bool is_silent_ = false;
  bool is_slow_ = false;
};

TEST_F(PeerReasonsTest, TheLauncherThatCouldServeItSaysWhy) {
  auto nodes = Use({"small"});
  RequestId accepted = Request({"small"});
  ASSERT_TRUE(Await([&] { return IsPaused(); }));
  RequestId behind = Request({"small"});
  time_.Advance(seconds(1));
  std::string why = "np02: second main uses 1 of 1 instances; raise its max-servers, or wait for nodes";
  EXPECT_EQ(TextAtFirst(accepted), why);
  EXPECT_EQ(TextAtFirst(behind), why) << "equal causes have equal texts";
  std::vector<WaitReason> own = np01_->launcher->FindRequest(behind)->waits;
  ASSERT_EQ(own.size(), 1u) << "for programs each launcher says what its own pools say";
  EXPECT_EQ(own[0].code, "others-can-serve");
  EXPECT_EQ(own[0].text, "left to second main, which has its labels");
  Return(nodes);
}

TEST_F(PeerReasonsTest, ASilentLauncherIsNamed) {
  auto nodes = Use({"small"});
  Request({"small"});
  ASSERT_TRUE(Await([&] { return IsPaused(); }));
  RequestId behind = Request({"small"});
  is_silent_ = true;
  EXPECT_EQ(TextAtFirst(behind), "np02: launcher np02 does not answer: port 8005 does not answer");
  is_silent_ = false;
  EXPECT_THAT(TextAtFirst(behind), ::testing::HasSubstr("uses 1 of 1 instances"));
  is_slow_ = true;
  TextAtFirst(behind);
  EXPECT_THAT(TextAtFirst(behind), ::testing::HasSubstr("launcher np02 does not answer: "));
  Return(nodes);
}

// WHY-3
TEST_F(PeerReasonsTest, NobodyIsAskedUnlessSomebodyWantsToKnow) {
  auto nodes = Use({"small"});
  for (int i = 0; i < 20; ++i) Request({"small"});
  time_.Advance(std::chrono::minutes(1));
  EXPECT_EQ(questions_, 0);
  for (int i = 0; i < 100; ++i) {
    np01_->launcher->ForEachRequest([](const RequestStatus&) { return true; });
    time_.Advance(std::chrono::milliseconds(100));
  }
  EXPECT_LE(questions_, 4) << "in ten seconds, whatever the number of requests";
  time_.Advance(seconds(20));
  int asked = questions_;
  time_.Advance(std::chrono::minutes(1));
  EXPECT_EQ(questions_, asked);
  Return(nodes);
}

// WHY-4
TEST_F(PeerReasonsTest, EachShowsTheProvidersOfAll) {
  auto nodes = Use({"small"});
  time_.Advance(seconds(1));
  std::vector<ProviderStatus> seen = np01_->launcher->ClusterProviders();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].name, ProviderName("first"));
  EXPECT_TRUE(seen[0].is_own);
  EXPECT_EQ(seen[0].launchers, std::vector<std::string>{"np01"});
  const ProviderStatus& second = seen[1];
  EXPECT_EQ(second.name, ProviderName("second"));
  EXPECT_FALSE(second.is_own);
  EXPECT_EQ(second.launchers, std::vector<std::string>{"np02"});
  EXPECT_EQ(second.driver, "");
  EXPECT_EQ(second.state, ProviderState::kUp);
  EXPECT_EQ(second.nodes.at("in-use"), 1);
  EXPECT_EQ(second.used.at("instances"), 1);
  ASSERT_EQ(second.pools.size(), 1u);
  EXPECT_EQ(second.pools[0].name, PoolName("main"));
  ASSERT_EQ(second.pools[0].labels.size(), 1u);
  EXPECT_EQ(second.pools[0].labels[0].name, LabelName("small"));
  Return(nodes);
}

}  // namespace

}  // namespace nodepool::launcher
