#include "launcher/cloud_fixture_for_test.h"

namespace nodepool::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

std::string Labels(const Component& pool) {
  std::string labels;
  for (const LabelName& label : pool.supported_labels) labels += label.value + " ";
  return labels;
}

// The configuration is replaced while the launcher runs.
class ReconfigurationTest : public CloudTest {
 protected:
  void Reconfigure(Running& running) {
    Load();
    running.launcher->Reconfigure(config_);
    time_.Advance(seconds(1));
  }
  std::vector<Component> Pools() {
    std::vector<Component> pools;
    for (const std::string& name : Children("/nodepool/components/pool")) {
      auto data = time_.Run(client_->Get("/nodepool/components/pool/" + name));
      pools.push_back(*ParseComponent(ComponentKind::kPool, data->data));
    }
    return pools;
  }
  std::vector<LauncherId> PoolIds() {
    std::vector<LauncherId> ids;
    for (const Component& pool : Pools()) ids.push_back(pool.id);
    return ids;
  }
};

// LA-69
TEST_F(ReconfigurationTest, APausedRequestIsDeclinedWhenTheLimitSinksBelowIt) {
  AddCloud({.pool = "max-servers: 2"});
  Running& running = StartLauncher();
  auto used = Use({"small", "small"});
  RequestId waiting = Request({"small", "small"});
  ASSERT_TRUE(AwaitState(waiting, RequestState::kPending));
  RemoveClouds();
  AddCloud({.pool = "max-servers: 1"});
  Reconfigure(running);
  EXPECT_TRUE(AwaitState(waiting, RequestState::kFailed));
  EXPECT_THAT(Read(waiting)->declined_by, SizeIs(1));
  Return(used);
}

// BB-23
TEST_F(ReconfigurationTest, ADisabledPoolStaysRegisteredAndDeclines) {
  AddCloud({.pool = "max-servers: 1"});
  Running& running = StartLauncher();
  auto used = Use({"small"});
  RequestId waiting = Request({"small"});
  ASSERT_TRUE(AwaitState(waiting, RequestState::kPending));
  std::vector<LauncherId> ids = PoolIds();
  RemoveClouds();
  AddCloud({.pool = "max-servers: 0"});
  Reconfigure(running);
  EXPECT_TRUE(AwaitState(waiting, RequestState::kFailed));
  EXPECT_EQ(PoolIds(), ids);
  RequestId later = Request({"small"});
  EXPECT_TRUE(AwaitState(later, RequestState::kFailed));
  Return(used);
  EXPECT_TRUE(Await([this] { return Nodes().empty(); })) << "existing nodes live out their life";
}

TEST_F(ReconfigurationTest, ARaisedLimitServesWhatWaits) {
  AddCloud({.pool = "max-servers: 1"});
  Running& running = StartLauncher();
  auto used = Use({"small"});
  RequestId waiting = Request({"small"});
  ASSERT_TRUE(AwaitState(waiting, RequestState::kPending));
  RemoveClouds();
  AddCloud({.pool = "max-servers: 2"});
  Reconfigure(running);
  EXPECT_TRUE(AwaitState(waiting, RequestState::kFulfilled));
  EXPECT_FALSE(Pools().at(0).is_paused);
  Return(used);
}

// LA-77
TEST_F(ReconfigurationTest, AnAddedLabelIsAnnouncedAndServed) {
  AddCloud();
  Running& running = StartLauncher();
  EXPECT_EQ(Labels(Pools().at(0)), "small ");
  std::vector<LauncherId> ids = PoolIds();
  RemoveClouds();
  AddCloud({.labels = {"small", "large"}});
  Reconfigure(running);
  EXPECT_EQ(Labels(Pools().at(0)), "large small ");
  EXPECT_EQ(PoolIds(), ids) << "the pool worker continues";
  EXPECT_TRUE(AwaitState(Request({"large"}), RequestState::kFulfilled));
}

TEST_F(ReconfigurationTest, ARemovedLabelIsDeclinedAndItsReadyNodesStay) {
  AddCloud({.labels = {"small", "large"}});
  SetLabel("large", "min-ready: 1");
  Running& running = StartLauncher();
  ASSERT_TRUE(Await([this] { return FreeNodes() == 1; }));
  RemoveClouds();
  AddCloud();
  Reconfigure(running);
  EXPECT_TRUE(AwaitState(Request({"large"}), RequestState::kFailed));
  EXPECT_THAT(NodesIn(NodeState::kReady), SizeIs(1));
}

// LA-72
TEST_F(ReconfigurationTest, ARemovedProviderVanishesWithItsPoolAndGivesWaitingRequestsBack) {
  AddCloud({.name = "cloud", .pool = "max-servers: 1"});
  AddCloud({.name = "second", .provider = "priority: 200"});
  Running& running = StartLauncher();
  auto used = Use({"small"});
  RequestId waiting =
      Request({"small"}, [](NodeRequest& request) { request.provider = ProviderName("cloud"); });
  ASSERT_TRUE(AwaitState(waiting, RequestState::kPending));
  RemoveClouds();
  AddCloud({.name = "second", .provider = "priority: 200"});
  Reconfigure(running);
  EXPECT_THAT(Pools(), SizeIs(1));
  EXPECT_TRUE(AwaitState(waiting, RequestState::kFulfilled)) << "given back, served by the other (D-24)";
  EXPECT_EQ(NodeOf(waiting).provider.value, "second");
  EXPECT_THAT(Read(waiting)->declined_by, IsEmpty());
  Return(used);
  time_.Advance(seconds(120));
  EXPECT_THAT(NodesIn(NodeState::kUsed), SizeIs(1)) << "no launcher handles the removed provider's nodes";
}

// D-31
TEST_F(ReconfigurationTest, ARemovedProvidersRunningLaunchIsDelivered) {
  AddCloud({.simulation = "create-latency: 30"});
  Running& running = StartLauncher();
  RequestId launching = Request({"small"});
  ASSERT_TRUE(Await([this] { return NodesIn(NodeState::kBuilding).size() == 1; }));
  RemoveClouds();
  AddCloud({.name = "second", .labels = {"large"}});
  Reconfigure(running);
  EXPECT_THAT(Pools(), SizeIs(1));
  EXPECT_TRUE(AwaitState(launching, RequestState::kFulfilled));
  EXPECT_EQ(NodeOf(launching).provider.value, "cloud");
}

// D-31
TEST_F(ReconfigurationTest, ARemovedProviderIsLetGoOnlyAfterItsDeadNodesAreDeleted) {
  AddCloud({.simulation = "delete-latency: 20"});
  Running& running = StartLauncher();
  auto used = Use({"small"});
  Return(used);
  ASSERT_TRUE(Await([this] { return NodesIn(NodeState::kDeleting).size() == 1; }));
  RemoveClouds();
  AddCloud({.name = "second", .labels = {"large"}});
  Reconfigure(running);
  EXPECT_TRUE(Await([this] { return Nodes().empty(); }));
  EXPECT_THAT(cloud().servers(), IsEmpty());
}

TEST_F(ReconfigurationTest, AProviderThatComesBackServesAgainAndCleansUp) {
  AddCloud();
  Running& running = StartLauncher();
  auto used = Use({"small"});
  RemoveClouds();
  AddCloud({.name = "second", .labels = {"large"}});
  Reconfigure(running);
  time_.Advance(seconds(5));
  Return(used);
  time_.Advance(seconds(120));
  ASSERT_THAT(Nodes(), SizeIs(1));
  RemoveClouds();
  AddCloud();
  Reconfigure(running);
  EXPECT_TRUE(Await([this] { return Nodes().empty(); }));
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFulfilled));
}

TEST_F(ReconfigurationTest, AReplacedProviderFinishesItsLaunches) {
  AddCloud({.pool = "max-servers: 5", .simulation = "create-latency: 30"});
  Running& running = StartLauncher();
  RequestId launching = Request({"small"});
  ASSERT_TRUE(Await([this] { return NodesIn(NodeState::kBuilding).size() == 1; }));
  NodeId node = NodesIn(NodeState::kBuilding).at(0);
  RemoveClouds();
  AddCloud({.pool = "max-servers: 6", .simulation = "create-latency: 30"});
  Reconfigure(running);
  EXPECT_TRUE(AwaitState(launching, RequestState::kFulfilled));
  EXPECT_THAT(Read(launching)->nodes, ElementsAre(node));
  EXPECT_EQ(cloud().created_count(), 1u);
}

TEST_F(ReconfigurationTest, ARemovedPoolGivesBackAndLeavesTheOtherPoolAlone) {
  std::string second_pool =
      ", {name: second, max-servers: 1, labels: [{name: large, cloud-image: image, min-ram: 8192}]}";
  SetLabel("large", "");
  AddCloud({.more_pools = second_pool});
  Running& running = StartLauncher();
  auto used = Use({"large"});
  RequestId waiting = Request({"large"});
  ASSERT_TRUE(AwaitState(waiting, RequestState::kPending));
  RemoveClouds();
  AddCloud();
  Reconfigure(running);
  EXPECT_TRUE(AwaitState(waiting, RequestState::kFailed)) << "no pool offers the label any more (D-23)";
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFulfilled));
  Return(used);
  EXPECT_TRUE(Await([this] {
    return NodesIn(NodeState::kUsed).empty() && NodesIn(NodeState::kDeleting).empty();
  })) << "the provider's dead nodes are deleted, whatever their pool";
}

TEST_F(ReconfigurationTest, ARemovedPoolThatFinishesALaunchIsShownAsDraining) {
  SetLabel("large", "");
  AddCloud({.simulation = "create-latency: 30",
            .more_pools = ", {name: second, labels: [{name: large, cloud-image: image, min-ram: 8192}]}"});
  Running& running = StartLauncher();
  RequestId launching = Request({"large"});
  ASSERT_TRUE(Await([&] { return Nodes().size() == 1; }));
  RemoveClouds();
  AddCloud({.simulation = "create-latency: 30"});
  Reconfigure(running);
  auto pools = [&] {
    std::map<std::string, bool> draining;
    const ProviderStatus provider = running.launcher->Providers().at(0);
    for (const PoolStatus& pool : provider.pools) draining[pool.name.value] = pool.is_draining;
    return draining;
  };
  EXPECT_THAT(pools(), ElementsAre(Pair("main", false), Pair("second", true)));
  EXPECT_TRUE(AwaitState(launching, RequestState::kFulfilled));
  EXPECT_TRUE(Await([&] { return pools().size() == 1; }));
}

// configuration.17.9
TEST_F(ReconfigurationTest, TopLevelSettingsChangeWithoutReplacingAProvider) {
  AddCloud();
  Running& running = StartLauncher();
  RequestId held = Request({"small"}, [](NodeRequest& request) { request.tenant_name = "a"; });
  ASSERT_TRUE(AwaitState(held, RequestState::kFulfilled));
  top_ = "tenant-resource-limits: [{tenant-name: a, max-servers: 1}]";
  SetLabel("small", "min-ready: 2");
  Reconfigure(running);
  EXPECT_TRUE(Await([this] { return FreeNodes() == 2; }));
  RequestId over_limit = Request({"small"}, [](NodeRequest& request) { request.tenant_name = "a"; });
  time_.Advance(seconds(30));
  EXPECT_EQ(Read(over_limit)->state, RequestState::kRequested);
  SetLabel("small", "min-ready: 0, max-ready-age: 5");
  Reconfigure(running);
  EXPECT_TRUE(Await([this] { return FreeNodes() == 0; }));
  top_ = "";
  Reconfigure(running);
  EXPECT_TRUE(AwaitState(over_limit, RequestState::kFulfilled));
}

// Providers that count how often they are started and stopped.
class ReplacementTest : public LauncherTest {
 protected:
  // As if the files were read again and one provider's section had changed.
  void Reconfigure(Running& running, std::optional<std::string> changed_provider = {}) {
    config_ = std::make_shared<driver::LoadedConfig>(*config_);
    if (changed_provider) {
      auto changed = std::make_shared<driver::ProviderConfig>(provider_config(*changed_provider));
      changed->fingerprint += "changed";
      config_->providers.at(changed->name) = changed;
    }
    running.launcher->Reconfigure(config_);
  }
};

// BB-25
TEST_F(ReplacementTest, AFileReadAgainWithoutChangeReplacesNothing) {
  Running& running = StartLauncher();
  std::vector<std::string> pools = Children("/nodepool/components/pool");
  Reconfigure(running);
  time_.Advance(seconds(5));
  EXPECT_EQ(script().starts, 1);
  EXPECT_EQ(script().stops, 0);
  EXPECT_EQ(Children("/nodepool/components/pool"), pools);
}

TEST_F(ReplacementTest, OnlyAProviderThatChangedIsReplaced) {
  AddPool("second", "main", {"large"});
  Running& running = StartLauncher();
  Reconfigure(running, "second");
  time_.Advance(seconds(5));
  EXPECT_EQ(script("cloud").starts, 1);
  EXPECT_EQ(script("cloud").stops, 0);
  EXPECT_EQ(script("second").starts, 2);
  EXPECT_EQ(script("second").stops, 1);
}

// drivers.md 1.4
TEST_F(ReplacementTest, TheOldOneIdlesTheNewOneStartsTheOldOneStops) {
  Running& running = StartLauncher();
  script().calls.clear();
  script().start_time = seconds(5);
  Reconfigure(running, "cloud");
  time_.Advance(seconds(4));
  EXPECT_THAT(script().calls, ElementsAre("idle 1", "start 2"));
  time_.Advance(seconds(2));
  EXPECT_THAT(script().calls, ElementsAre("idle 1", "start 2", "started 2", "stop 1"));
}

// launcher.md 4.3
TEST_F(ReplacementTest, ARequestThatWaitsForCapacityIsServedByTheNewOne) {
  AddPool("cloud", "main", {"small"}).max_servers = 1;
  Running& running = StartLauncher();
  auto nodes = Use({"small"});
  RequestId waiting = Request({"small"});
  ASSERT_TRUE(AwaitState(waiting, RequestState::kPending));
  script().start_time = seconds(30);
  Reconfigure(running, "cloud");
  time_.Advance(seconds(1));
  Return(nodes);
  time_.Advance(seconds(20));
  EXPECT_EQ(Read(waiting)->state, RequestState::kPending);
  EXPECT_TRUE(AwaitState(waiting, RequestState::kFulfilled));
}

// launcher.md 8, D-111
TEST_F(ReplacementTest, ItsPoolTakesNoRequestUntilTheNewOneHasStarted) {
  Running& running = StartLauncher();
  script().start_time = seconds(5);
  Reconfigure(running, "cloud");
  RequestId request = Request({"small"});
  time_.Advance(seconds(4));
  EXPECT_EQ(Read(request)->state, RequestState::kRequested);
  EXPECT_TRUE(AwaitState(request, RequestState::kFulfilled));
}

TEST_F(ReplacementTest, TheOldOneStopsEvenIfItsSuccessorCannotStart) {
  Running& running = StartLauncher();
  script().calls.clear();
  script().start_error = [](int) { return Error(Verdict::kFail, "no such cloud"); };
  Reconfigure(running, "cloud");
  ASSERT_TRUE(Await([this] { return script().starts == 3; }));
  EXPECT_EQ(std::ranges::count(script().calls, "stop 1"), 1);
}

TEST_F(ReplacementTest, ASuccessorThatIsReplacedOrRemovedBeforeItStartedBlocksNoOther) {
  AddPool("second", "main", {"large"});
  Running& running = StartLauncher();
  script().start_time = script("second").start_time = std::chrono::hours(1);
  Reconfigure(running, "cloud");
  Reconfigure(running, "second");
  time_.Advance(seconds(1));
  script().start_time = {};
  Reconfigure(running, "cloud");
  time_.Advance(seconds(1));
  EXPECT_EQ(script().stops, 2) << "the first, and the one that never started";
  config_ = std::make_shared<driver::LoadedConfig>(*config_);
  config_->providers.erase(ProviderName("second"));
  Reconfigure(running);
  EXPECT_TRUE(Await([this] { return script("second").stops == 2; }, seconds(5)));
}

// D-30
TEST_F(ReplacementTest, AProviderThatCannotStartIsReplacedByOneThatCan) {
  script().start_error = [](int) { return Error(Verdict::kFail, "no such cloud"); };
  Running& running = StartLauncher();
  time_.Advance(seconds(20));
  EXPECT_FALSE(running.launcher->is_ready());
  RequestId request = Request({"small"});
  script().start_error = {};
  Reconfigure(running, "cloud");
  EXPECT_TRUE(AwaitState(request, RequestState::kFulfilled, milliseconds(500)));
  EXPECT_TRUE(running.launcher->is_ready());
}

}  // namespace
}  // namespace nodepool::launcher
