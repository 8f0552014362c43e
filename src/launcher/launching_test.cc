#include "launcher/cloud_fixture_for_test.h"
#include "launcher/launcher_fixture_for_test.h"
#include "model/node_request.h"

namespace nodepool::launcher {

namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ProviderStartTest : public LauncherTest {};

TEST_F(ProviderStartTest,
       ProviderThatDoesNotStartAffectsNoOtherAndIsTriedAgain) {  // D-30, D-64, configuration.17.10
  AddPool("broken", "main", {"other"});
  script("broken").start_error = [](int start) -> std::optional<Error> {
    if (start < 4) return Error(Verdict::kFail, "no such cloud");
    return std::nullopt;
  };
  Running& running = StartLauncher();
  EXPECT_FALSE(running.launcher->is_ready());
  RequestId good = Request({"small"});
  EXPECT_TRUE(AwaitState(good, RequestState::kFulfilled, seconds(5)));
  EXPECT_TRUE(Await([&] { return running.launcher->is_ready(); }));
  RequestId later = Request({"other"});
  EXPECT_TRUE(AwaitState(later, RequestState::kFulfilled));
}

TEST_F(ProviderStartTest, ProviderStatesAreAnnounced) {  // D-30
  AddPool("broken", "main", {"other"});
  script("broken").start_error = [](int) { return Error(Verdict::kFail, "no such cloud"); };
  script().available = driver::QuotaInformation::Limit({{"cores", 8}});
  auto report_of = [this](const std::string& provider) {
    std::string name = Children("/nodepool/components/launcher").at(0);
    auto data = time_.Run(client_->Get("/nodepool/components/launcher/" + name));
    return ParseComponent(ComponentKind::kLauncher, data->data)->providers[ProviderName(provider)];
  };
  StartLauncher();
  WallTime start = time_.loop().Now();
  EXPECT_EQ(report_of("cloud"), (ProviderReport{ProviderState::kUp, start, "", {{"cores", 8}}}));
  EXPECT_EQ(report_of("broken"), (ProviderReport{ProviderState::kFailing, start, "no such cloud", {}}));
  time_.Advance(seconds(30));
  EXPECT_EQ(report_of("broken").since, start) << "it fails since then, however often it was tried";
  script("broken").start_error = {};
  ASSERT_TRUE(Await([&] { return report_of("broken").state == ProviderState::kUp; }));
  EXPECT_GT(report_of("broken").since, start);
  EXPECT_EQ(report_of("broken").fault, "");
  script().available = driver::QuotaInformation::Limit({{"cores", 6}});
  script().capacity_changed();
  time_.Advance(seconds(1));
  EXPECT_EQ(report_of("cloud").limit, (Resources{{"cores", 6}}));
}

TEST_F(ProviderStartTest, ProviderWhoseStartHangsAffectsNoOther) {  // D-30, D-35
  AddPool("hanging", "main", {"other"});
  script("hanging").start_time = std::chrono::hours(1);
  Running& running = StartLauncher();
  RequestId id = Request({"small"});
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_FALSE(running.launcher->is_ready());
  EXPECT_EQ(script("hanging").stops, 1) << "what a failed start left is stopped before the next";
}

class FailingLaunchTest : public LauncherTest {};

TEST_F(FailingLaunchTest, DeclinesAndFreesTheSiblings) {  // D-11
  script().launch_error = [](int launch) -> std::optional<Error> {
    if (launch == 0) return Error(Verdict::kFail, "server went to ERROR");
    return std::nullopt;
  };
  StartLauncher();
  std::set<NodeId> failed;
  Subscription registration = WatchNodes([&](const NodeId& id, const Node& node) {
    if (node.state == NodeState::kFailed) failed.insert(id);
  });
  RequestId id = Request({"small", "large"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFailed));
  EXPECT_EQ(Read(id)->declined_by.size(), 1u);
  EXPECT_TRUE(Await([&] { return Nodes().size() == 1; })) << "the failed node is deleted";
  EXPECT_EQ(failed.size(), 1u) << "other launchers could see that it failed";
  EXPECT_EQ(FreeNodes(), 1);
}

TEST_F(FailingLaunchTest, LostSessionIsNotTriedAgain) {  // LA-78
  script().launch_error = [](int) { return Error(Verdict::kLostSession, "the session is over"); };
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFailed));
  EXPECT_EQ(script().launches, 1);
  EXPECT_TRUE(Await([&] { return Nodes().empty(); }));
}

// The record of its second node cannot be created; the first one is launched for a minute.
TEST_F(FailingLaunchTest, ALaunchWithoutARecordUsesNoCapacity) {  // D-11
  AddPool("cloud", "main", {"small"}).max_servers = 2;
  script().launch_time = seconds(60);
  Running& launcher = StartLauncher();
  int created = 0;
  launcher.recorder->SetError(Error(Verdict::kFail, "refused"));
  launcher.recorder->FailWhen([&](const testing::FaultyZk::Call& call) {
    bool is_creation = call.is_write && call.path == "/nodepool/nodes/";
    return is_creation && ++created == 2 ? testing::FaultyZk::Fault::kBefore
                                         : testing::FaultyZk::Fault::kNone;
  });
  RequestId failing = Request({"small", "small"});
  ASSERT_TRUE(Await([&] { return created >= 2; }));
  RequestId next = Request({"small"});
  time_.Advance(seconds(5));
  EXPECT_EQ(script().launches, 2) << "one of each request";
  EXPECT_TRUE(AwaitState(failing, RequestState::kFailed));
  EXPECT_TRUE(AwaitState(next, RequestState::kFulfilled));
}

class LaunchingTest : public CloudTest {};

TEST_F(LaunchingTest, AttemptsAreLimited) {  // LA-21, LA-46
  AddCloud({.provider = "launch-retries: 2"});
  StartLauncher();
  cloud().FailNextCreates(2);
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFailed));
  EXPECT_EQ(Read(id)->declined_by.size(), 1u);
  RequestId next = Request({"small"});
  EXPECT_TRUE(AwaitState(next, RequestState::kFulfilled)) << "no third attempt met the fault";
}

TEST_F(LaunchingTest, TheNextAttemptBootsWhatWasUploadedMeanwhile) {
  top_ = "diskimages: [{name: debian}]";
  AddCloud({.provider = "diskimages: [{name: debian}]", .image = "diskimage: debian"});
  std::string former = AddUpload("debian");
  StartLauncher();
  cloud().FailNextCreates(1);
  RequestId id = Request({"small"});
  ASSERT_TRUE(Await([&] { return cloud().create_attempts() == 1; }));
  std::string later = AddUpload("debian", "cloud", "0000000002");
  ASSERT_EQ(Read(Nodes().at(0))->image_id, former);
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(NodeOf(id).image_id, later);
}

TEST_F(LaunchingTest, LaunchTimeoutCountsAsAnAttempt) {  // LA-22
  AddCloud({.provider = "launch-retries: 2, launch-timeout: 30"});
  StartLauncher();
  cloud().HangNextCreates(2);
  RequestId id = Request({"small"});
  time_.Advance(seconds(50));
  EXPECT_EQ(Read(id)->state, RequestState::kPending);
  ASSERT_TRUE(AwaitState(id, RequestState::kFailed, seconds(20)));
  EXPECT_EQ(Read(id)->declined_by.size(), 1u);
  EXPECT_EQ(cloud().created_count(), 2u);
  EXPECT_TRUE(Await([&] { return cloud().servers().empty(); }));
}

TEST_F(LaunchingTest, AttemptsShareTheNodeAndTheLastMachineIsRemoved) {  // BB-39
  AddCloud({.provider = "launch-retries: 3"});
  StartLauncher();
  cloud().FailNextCreatesWithServer(3);
  std::set<NodeId> seen;
  Subscription registration = WatchNodes([&](const NodeId& id, const Node&) { seen.insert(id); });
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFailed));
  EXPECT_EQ(cloud().created_count(), 3u);
  EXPECT_EQ(seen.size(), 1u);
  EXPECT_TRUE(Await([&] { return Nodes().empty() && cloud().servers().empty(); }));
}

TEST_F(LaunchingTest, FailedNodeThatCannotBeDeletedBlocksNoRequest) {  // LA-51
  AddCloud({.provider = "launch-retries: 2", .simulation = "delete-latency: 10"});
  StartLauncher();
  cloud().FailNextCreatesWithServer(2);
  RequestId id = Request({"small"});
  time_.Advance(seconds(5));
  ASSERT_EQ(cloud().created_count(), 1u);
  cloud().FailNextDeletes(1'000'000);  // from the second deletion on
  ASSERT_TRUE(AwaitState(id, RequestState::kFailed));
  RequestId next = Request({"small"});
  ASSERT_TRUE(AwaitState(next, RequestState::kFulfilled));
  EXPECT_EQ(Nodes().size(), 2u);
  cloud().FailNextDeletes(0);
}

TEST_F(LaunchingTest, DeletionBetweenAttemptsIsRepeated) {  // LA-80
  AddCloud({.provider = "launch-retries: 2"});
  StartLauncher();
  cloud().FailNextCreatesWithServer(1);
  cloud().FailNextDeletes(1);
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(Read(id)->nodes.size(), 1u);
  EXPECT_EQ(cloud().servers().size(), 1u);
  EXPECT_EQ(cloud().created_count(), 2u);
}

class DriverFaultTest : public LauncherTest {
 protected:
  // The first launcher's fault of the label in pool `main` of provider `cloud`.
  std::optional<std::string> FaultOf(const std::string& label) {
    for (const ProviderStatus& provider : launchers_.front()->launcher->Providers()) {
      if (provider.name != ProviderName("cloud")) continue;
      for (const LabelStatus& status : provider.pools.at(0).labels) {
        if (status.name == LabelName(label)) return status.fault;
      }
    }
    return std::nullopt;
  }
};

// D-26
TEST_F(DriverFaultTest, ADriverThatCannotAnswerDefersOnlyItsOwnRequests) {
  AddPool("second", "main", {"other"});
  StartLauncher();
  time_.Advance(seconds(2));
  script().label_errors.emplace(LabelName("small"), Error(Verdict::kRetry, "the cloud does not answer"));
  RequestId deferred = Request({"small"});
  RequestId served = Request({"other"});
  EXPECT_TRUE(AwaitState(served, RequestState::kFulfilled));
  time_.Advance(seconds(60));
  EXPECT_EQ(Read(deferred)->state, RequestState::kRequested);
  EXPECT_TRUE(Read(deferred)->declined_by.empty());
  EXPECT_EQ(FaultOf("small"), "the cloud does not answer");
  script().label_errors.clear();
  EXPECT_TRUE(AwaitState(deferred, RequestState::kFulfilled, seconds(11)));
  EXPECT_EQ(FaultOf("small"), std::nullopt);
}

// D-26
TEST_F(DriverFaultTest, AHandlerWaitsForADriverThatCannotAnswer) {
  script().available = driver::QuotaInformation::Limit({{"instances", 1}});
  StartLauncher();
  auto used = Use({"small"});
  RequestId waiting = Request({"small"});
  ASSERT_TRUE(AwaitState(waiting, RequestState::kPending));
  script().label_errors.emplace(LabelName("small"), Error(Verdict::kFail, "the cloud answers nonsense"));
  Return(used);
  time_.Advance(seconds(30));
  EXPECT_EQ(Read(waiting)->state, RequestState::kPending);
  script().label_errors.clear();
  EXPECT_TRUE(AwaitState(waiting, RequestState::kFulfilled, seconds(11)));
}

// D-26
TEST_F(DriverFaultTest, ALabelThatCanNeverWorkIsDeclined) {
  script().label_errors.emplace(LabelName("small"), Error(Verdict::kInvalid, "no such flavor"));
  StartLauncher();
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFailed));
}

TEST_F(DriverFaultTest, MinReadySurvivesADriverThatThrows) {
  label_config("small").min_ready = 1;
  script().label_errors.emplace(LabelName("small"), Error(Verdict::kRetry, "the cloud does not answer"));
  StartLauncher();
  time_.Advance(seconds(30));
  EXPECT_EQ(FreeNodes(), 0);
  script().label_errors.clear();
  EXPECT_TRUE(Await([this] { return FreeNodes() == 1; }));
}

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
