#include "launcher/cloud_fixture_for_test.h"

namespace nodepool::launcher {
namespace {

using std::chrono::seconds;

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

}  // namespace
}  // namespace nodepool::launcher
