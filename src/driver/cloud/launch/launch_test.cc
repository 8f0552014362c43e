#include <gmock/gmock.h>

#include "async/task_group.h"
#include "driver/cloud/cloud_provider_fixture_for_test.h"
#include "driver/cloud/quota/quota_cache.h"

namespace nodepool::driver::cloud {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

class LaunchTest : public ProviderTest {};

// drivers.md 5.15, with two fewer writes: the image is known before the record is created.
TEST_F(LaunchTest, AWatcherSeesImageThenIdThenAddressesThenReady) {
  StartProvider();
  time.Run(LaunchNode());
  EXPECT_THAT(history, ElementsAre("init image", "building image", "building image machine-1",
                                   "building image machine-1 address", "ready image machine-1 address keys"));
  EXPECT_THAT(Results(), ElementsAre("ready"));
  EXPECT_EQ(outcomes[0].requestor, "tester");
  EXPECT_EQ(outcomes[0].duration, seconds(3));
}

// launcher.md 17
TEST_F(LaunchTest, FillsTheRecordFromConfigurationAndInstance) {
  StartProvider();
  time.Run(LaunchNode());
  Node record = Stored();
  EXPECT_EQ(record.state, NodeState::kReady);
  EXPECT_EQ(record.image_id, "debian");
  EXPECT_EQ(record.username, "zuul");
  EXPECT_EQ(record.python_path, "auto");
  EXPECT_EQ(record.connection_type, "ssh");
  EXPECT_EQ(record.interface_ip, "203.0.113.1");
  EXPECT_EQ(record.private_ipv4, "10.0.0.1");
  EXPECT_EQ(record.cloud, "scripted");
  EXPECT_EQ(record.az, "zone-of-the-cloud");
  EXPECT_EQ(record.host_keys, std::vector<std::string>{"ssh-ed25519 AAAA"});
  EXPECT_EQ(record.resources, (Resources{{"cores", 2}, {"instances", 1}, {"ram", 2048}}));
  EXPECT_EQ(record.attributes, (boost::json::object{{"executor-zone", "north"}}));
  EXPECT_FALSE(record.hostname);
  EXPECT_EQ(cloud->requested[0].hostname, "np" + last_id.str());
  EXPECT_EQ(cloud->requested[0].metadata,
            (std::map<std::string, std::string>{{"nodepool_node_id", last_id.str()},
                                                {"nodepool_pool_name", "main"},
                                                {"nodepool_provider_name", "cloud"}}));
}

// drivers.5.2
TEST_F(LaunchTest, EachConnectionSettingOfTheMachineOverridesItsOwn) {
  label->connection.username = "Administrator";
  label->connection.shell_type = "cmd";
  label->connection.connection_type = "winrm";
  label->connection.connection_port = 5986;
  StartProvider();
  cloud->connection.python_path = "/usr/bin/python3";
  time.Run(LaunchNode());
  EXPECT_EQ(Stored().username, "Administrator");
  EXPECT_EQ(Stored().python_path, "/usr/bin/python3");
  EXPECT_EQ(Stored().shell_type, "cmd");
  EXPECT_EQ(Stored().connection_type, "winrm");
  EXPECT_EQ(Stored().connection_port, 5986);
  EXPECT_EQ(scanned_port, 5986);
  cloud->connection = {};
  cloud->connection.shell_type = std::optional<std::string>();
  cloud->connection.connection_port = 5985;
  time.Run(LaunchNode());
  EXPECT_EQ(Stored().python_path, "auto");
  EXPECT_EQ(Stored().shell_type, std::nullopt);
  EXPECT_EQ(Stored().connection_port, 5985);
  EXPECT_EQ(scanned_port, 5985);
}

// drivers.5.2: access data instead of a port, as for pods; nothing is scanned.
TEST_F(LaunchTest, ThePortMayBeAnObject) {
  boost::json::object access{{"host", "https://api.example"}, {"token", "secret"}};
  StartProvider();
  cloud->connection.connection_type = "kubectl";
  cloud->connection.connection_port = access;
  time.Run(LaunchNode());
  EXPECT_EQ(Stored().state, NodeState::kReady);
  EXPECT_EQ(Stored().connection_type, "kubectl");
  EXPECT_EQ(Stored().connection_port, access);
  EXPECT_EQ(scans, 0);
}

TEST_F(LaunchTest, AnInvalidPortIsRefusedWithoutBeingShown) {
  config->launch_retries = 1;
  StartProvider();
  for (const boost::json::value& port : {boost::json::value(70000), boost::json::value(-1),
                                         boost::json::value("hunter2"), boost::json::value(nullptr)}) {
    cloud->connection.connection_port = port;
    log::Capture log;
    EXPECT_EQ(LaunchFails(), Verdict::kFail);
    EXPECT_GT(log.Count("connection_port is neither a port nor an object"), 0);
    EXPECT_EQ(log.Count("hunter2"), 0);
  }
}

TEST_F(LaunchTest, WithoutKeyCheckingThereIsNoScanAndOneWriteLess) {
  label->host_key_checking = false;
  StartProvider();
  time.Run(LaunchNode());
  EXPECT_EQ(scans, 0);
  EXPECT_THAT(history, ElementsAre("init image", "building image", "building image machine-1",
                                   "ready image machine-1 address"));
}

TEST_F(LaunchTest, InternalAddressIsPreferredWhereConfigured) {
  pool->use_internal_ip = true;
  StartProvider();
  time.Run(LaunchNode());
  EXPECT_EQ(Stored().interface_ip, "10.0.0.1");
}

// launcher.md 15.3: the failed machine is gone before the next attempt begins, and
// the record never names a machine that does not exist.
TEST_F(LaunchTest, RetriesAfterDeletingTheFailedMachine) {
  StartProvider();
  ScriptedAdapter::Creation broken;
  broken.fault_after_id = Error(Verdict::kFail, "no luck");
  cloud->creations = {broken, ScriptedAdapter::Creation()};
  cloud->failing_deletes = 2;
  time.Run(LaunchNode());
  EXPECT_THAT(cloud->deleted, ElementsAre("machine-1"));
  EXPECT_THAT(Results(), ElementsAre("error.unknown", "ready"));
  EXPECT_THAT(history, ElementsAre("init image", "building image", "building image machine-1",
                                   "building image", "building image machine-2",
                                   "building image machine-2 address", "ready image machine-2 address keys"));
  EXPECT_EQ(cloud->requested[0].hostname, cloud->requested[1].hostname);
  for (const CreateParameters& parameters : cloud->requested)
    EXPECT_THAT(parameters.attempt_mark, ::testing::MatchesRegex("[0-9a-f]{32}"));
  EXPECT_NE(cloud->requested[0].attempt_mark, cloud->requested[1].attempt_mark);
}

TEST_F(LaunchTest, GivesUpAfterTheConfiguredAttempts) {
  StartProvider();
  ScriptedAdapter::Creation broken;
  broken.fault_after_id = Error(Verdict::kFail, "no luck");
  cloud->creations = {broken};
  EXPECT_EQ(LaunchFails(), Verdict::kFail);
  EXPECT_EQ(cloud->requested.size(), 3u);
  // The deletion of the node removes the last machine.
  EXPECT_EQ(last.state, NodeState::kBuilding);
  EXPECT_EQ(last.external_id, "machine-3");
  EXPECT_EQ(cloud->machines.size(), 1u);
}

// drivers.md 5.4: 1 s, then 2 s, each varied by 40 %.
TEST_F(LaunchTest, AttemptsThatFailAtOnceAreSecondsApart) {
  StartProvider();
  ScriptedAdapter::Creation broken;
  broken.before_id = Duration(0);
  broken.fault_before_id = Error(Verdict::kFail, "no luck");
  cloud->creations = {broken};
  EXPECT_EQ(LaunchFails(), Verdict::kFail);
  ASSERT_EQ(outcomes.size(), 3u);
  EXPECT_EQ(outcomes[0].duration, Duration(0));
  EXPECT_GE(outcomes[1].duration, milliseconds(600));
  EXPECT_LE(outcomes[1].duration, milliseconds(1400));
  EXPECT_GE(outcomes[2].duration - outcomes[1].duration, milliseconds(1200));
  EXPECT_LE(outcomes[2].duration - outcomes[1].duration, milliseconds(2800));
}

TEST_F(LaunchTest, ZeroRetriesStillMeanOneAttempt) {
  config->launch_retries = 0;
  StartProvider();
  ScriptedAdapter::Creation broken;
  broken.fault_before_id = Error(Verdict::kFail, "no luck");
  cloud->creations = {broken};
  EXPECT_EQ(LaunchFails(), Verdict::kFail);
  EXPECT_EQ(cloud->requested.size(), 1u);
}

TEST_F(LaunchTest, QuotaErrorIsNotRetriedAndMakesTheQuotaBeReadAgain) {
  StartProvider();
  int asked = cloud->quota_asked;
  ScriptedAdapter::Creation refused;
  refused.fault_before_id = Error(Verdict::kQuota, "Quota exceeded for something");
  cloud->creations = {refused};
  EXPECT_EQ(LaunchFails(), Verdict::kQuota);
  EXPECT_EQ(cloud->requested.size(), 1u);
  EXPECT_THAT(Results(), ElementsAre("error.quota"));
  time.Advance(seconds(2));
  EXPECT_EQ(cloud->quota_asked, asked + 1);
}

TEST_F(LaunchTest, WhatTheCloudRefusesForGoodIsNotTriedAgain) {  // D-26
  StartProvider();
  ScriptedAdapter::Creation refused;
  refused.fault_before_id = Error(Verdict::kInvalid, "no such subnet");
  cloud->creations = {refused};
  EXPECT_EQ(LaunchFails(), Verdict::kInvalid);
  EXPECT_EQ(cloud->requested.size(), 2u) << "the second equal refusal is final";
  EXPECT_THAT(Results(), ElementsAre("error.unknown", "error.unknown"));
}

TEST_F(LaunchTest, KindsOfFailureHaveTheirMetrics) {
  StartProvider();
  const std::map<LaunchError::Kind, std::string> expected = {{LaunchError::Kind::kCapacity, "error.capacity"},
                                                             {LaunchError::Kind::kCandidate, "error.unknown"},
                                                             {LaunchError::Kind::kStatus, "error.status"},
                                                             {LaunchError::Kind::kNetwork, "error.network"}};
  for (const auto& [kind, result] : expected) {
    outcomes.clear();
    ScriptedAdapter::Creation broken;
    broken.kind = kind;
    cloud->creations = {broken, ScriptedAdapter::Creation()};
    time.Run(LaunchNode());
    EXPECT_THAT(Results(), ElementsAre(result, "ready"));
  }
}

TEST_F(LaunchTest, LaunchTimeoutEndsAnAttemptWhereverItIs) {
  config->launch_timeout = seconds(60);
  StartProvider();
  ScriptedAdapter::Creation slow;
  slow.after_id = std::chrono::hours(2);
  cloud->creations = {slow, ScriptedAdapter::Creation()};
  time.Run(LaunchNode());
  EXPECT_THAT(Results(), ElementsAre("error.servercreatetimeout", "ready"));
  EXPECT_THAT(cloud->deleted, ElementsAre("machine-1"));
  EXPECT_GE(outcomes[1].duration, seconds(60));
}

TEST_F(LaunchTest, ScanThatFailsInEveryAttemptFailsTheLaunch) {  // LA-48, LA-49
  StartProvider();
  failing_scans = 4;
  cloud->console = "kernel panic";
  log::Capture log;
  EXPECT_EQ(LaunchFails(), Verdict::kTimedOut);
  EXPECT_THAT(Results(), ElementsAre("error.keyscan", "error.keyscan", "error.keyscan"));
  EXPECT_EQ(log.Count("kernel panic"), 3);
}

// drivers.5.2
TEST_F(LaunchTest, HostKeysThatTheCloudHasMustBeTheScannedOnes) {
  StartProvider();
  for (const std::vector<std::string>& known :
       {std::vector<std::string>{"ssh-ed25519 AAAA"}, {"ssh-rsa CCCC", "ssh-ed25519 AAAA"}, {}}) {
    cloud->host_keys = known;
    time.Run(LaunchNode());
    EXPECT_THAT(Stored().host_keys, ElementsAre("ssh-ed25519 AAAA")) << "what was scanned counts";
  }
  outcomes.clear();
  for (const std::vector<std::string>& other :
       {std::vector<std::string>{"ssh-ed25519 BBBB"}, {"ssh-rsa CCCC"}}) {
    cloud->host_keys = other;
    log::Capture log;
    EXPECT_EQ(LaunchFails(), Verdict::kFail);
    EXPECT_EQ(log.Count("the host keys at the machine's address are not those that the cloud has of it"), 3);
  }
  EXPECT_EQ(Results().front(), "error.keyscan");
}

TEST_F(LaunchTest, WinrmWaitsForItsPortAndHasNoKeys) {  // BB-36
  label->connection.connection_type = "winrm";
  label->connection.connection_port = 5986;
  config->boot_timeout = seconds(30);
  StartProvider();
  failing_scans = 1;
  time.Run(LaunchNode());
  EXPECT_THAT(Results(), ElementsAre("error.keyscan", "ready")) << "a closed port costs an attempt";
  EXPECT_EQ(outcomes[0].duration, seconds(32));
  EXPECT_EQ(scanned_port, 5986);
  EXPECT_THAT(Stored().host_keys, ::testing::IsEmpty());
}

// LV-41
TEST_F(LaunchTest, AMachineMayHaveATimeoutOfItsOwnForTheKeyScan) {
  config->boot_timeout = seconds(30);
  StartProvider();
  cloud->boot_timeout = seconds(90);
  failing_scans = 1;
  time.Run(LaunchNode());
  EXPECT_THAT(Results(), ElementsAre("error.keyscan", "ready"));
  EXPECT_EQ(outcomes[0].duration, seconds(92));
}

TEST_F(LaunchTest, FailedScanIsDiagnosedAndRetried) {  // LA-47, LA-49
  config->boot_timeout = seconds(30);
  StartProvider();
  failing_scans = 1;
  cloud->console = "kernel panic\nno init found\n";
  log::Capture log;
  time.Run(LaunchNode());
  EXPECT_THAT(Results(), ElementsAre("error.keyscan", "ready"));
  EXPECT_EQ(cloud->scan_failures_reported, 1);
  EXPECT_EQ(log.Count("kernel panic"), 1);
  EXPECT_EQ(log.Count("no init found"), 1);
  EXPECT_EQ(outcomes[0].duration, seconds(32));
}

TEST_F(LaunchTest, MissingImageFailsAtOnce) {
  label->cloud_image.reset();
  label->diskimage = ImageName("never-built");
  StartProvider();
  EXPECT_EQ(provider->LabelReady(*label), Readiness::kNotReady);
  EXPECT_EQ(LaunchFails(), Verdict::kInvalid);
  EXPECT_THAT(Results(), ElementsAre("error.nodepool"));
  EXPECT_TRUE(cloud->requested.empty());
}

TEST_F(LaunchTest, RecordDeletedMeanwhileEndsTheLaunch) {
  StartProvider();
  TaskGroup group(time.loop(), log::Logger("test.launch"));
  group.Spawn("launch", LaunchNode());
  ASSERT_TRUE(time.RunUntil([&] { return cloud->machines.size() == 1; }));
  auto erase = zk::DeleteRecursive(*client, "/nodepool/nodes/" + last_id.str());
  time.Run(std::move(erase));
  time.Advance(seconds(60));
  EXPECT_EQ(group.size(), 0u);
  EXPECT_EQ(cloud->requested.size(), 1u) << "no further attempt for a record that is gone";
}

// At whatever point a launch is cancelled, the record names every machine that exists, so that deleting the
// node removes it.
TEST_F(LaunchTest, StoppedAnywhereItLeavesNoUnknownMachine) {
  StartProvider();
  bool is_complete = false;
  for (int steps = 0; !is_complete; ++steps) {
    ASSERT_LT(steps, 1000);
    cloud->machines.clear();
    TaskGroup group(time.loop(), log::Logger("test.launch"));
    last = Node();
    group.Spawn("launch", LaunchNode());
    time.loop().context().restart();
    for (int step = 0; step < steps && group.size() > 0; ++step) {
      if (time.loop().context().poll_one() == 0) {
        time.clock().AdvanceTo(time.clock().next_timer());
        time.loop().context().restart();
      }
    }
    is_complete = group.size() == 0;
    time.Run(group.Stop());
    ASSERT_LE(cloud->machines.size(), 1u);
    if (cloud->machines.empty()) continue;
    EXPECT_EQ(Stored().external_id, boost::json::value(cloud->machines.begin()->first))
        << "stopped after step " << steps;
  }
  EXPECT_EQ(Stored().state, NodeState::kReady);
}

TEST_F(LaunchTest, LostSessionEndsTheLaunchWithoutRetry) {
  StartProvider();
  TaskGroup group(time.loop(), log::Logger("test.launch"));
  group.Spawn("launch", LaunchNode());
  ASSERT_TRUE(time.RunUntil([&] { return cloud->requested.size() == 1; }));
  zk.ExpireSession(*client);
  time.Advance(seconds(30));
  EXPECT_EQ(group.size(), 0u);
  EXPECT_THAT(Results(), ElementsAre("error.zksession"));
  EXPECT_EQ(cloud->requested.size(), 1u);
}

// A launch whose session is lost is cancelled at once; the lost session is its result all the same.
TEST_F(LaunchTest, ALaunchStoppedBecauseItsSessionIsLostIsCounted) {  // launcher.27.2
  StartProvider();
  TaskGroup group(time.loop(), log::Logger("test.launch"));
  Subscription watch = client->OnSession([&](zk::SessionState state) {
    if (state == zk::SessionState::kLost) group.CancelAll();
  });
  group.Spawn("launch", LaunchNode());
  ASSERT_TRUE(time.RunUntil([&] { return cloud->requested.size() == 1; }));
  zk.ExpireSession(*client);
  time.Advance(seconds(30));
  EXPECT_EQ(group.size(), 0u);
  EXPECT_THAT(Results(), ElementsAre("error.zksession"));
}

TEST_F(LaunchTest, ACancelledLaunchHasNoResult) {  // launcher.27.2
  StartProvider();
  TaskGroup group(time.loop(), log::Logger("test.launch"));
  group.Spawn("launch", LaunchNode());
  ASSERT_TRUE(time.RunUntil([&] { return cloud->requested.size() == 1; }));
  time.Run(group.Stop());
  EXPECT_THAT(Results(), ::testing::IsEmpty());
}

// drivers.md 5.9
TEST_F(LaunchTest, ZoneIsDrawnFromThePoolElseFromTheCloud) {
  prepare_cloud = [](ScriptedAdapter& adapter) { adapter.zones = {"cloud-zone"}; };
  StartProvider();
  time.Run(LaunchNode());
  EXPECT_EQ(cloud->requested[0].az, "cloud-zone");
  pool->availability_zones = {"pool-zone"};
  time.Run(LaunchNode());
  EXPECT_EQ(cloud->requested[1].az, "pool-zone");
}

// BB-02: also when the cloud's zones are read twice.
TEST_F(LaunchTest, NodesOfARequestThatBeginTogetherShareOneZone) {
  prepare_cloud = [](ScriptedAdapter& adapter) {
    for (int i = 0; i < 50; ++i) adapter.zones.push_back("zone-" + std::to_string(i));
  };
  StartProvider();
  std::shared_ptr<NodeRequestHandler> handler = MakeHandler();
  TaskGroup group(time.loop(), log::Logger("test.launch"));
  for (Duration slowness : {seconds(1), seconds(20)}) {
    cloud->zones_duration = slowness;
    group.Spawn("launch", LaunchNode(handler));
    time.Advance(std::chrono::milliseconds(1));
  }
  time.Advance(seconds(60));
  ASSERT_EQ(cloud->requested.size(), 2u);
  EXPECT_EQ(cloud->requested[0].az, cloud->requested[1].az);
}

TEST_F(LaunchTest, ZoneOfAReusedNodeBindsTheRequest) {
  StartProvider();
  store::StoredRequest request;
  auto handler = provider->RequestHandler(config->pools.begin()->second, request);
  store::StoredNode here, there;
  here.record.az = "here";
  there.record.az = "there";
  EXPECT_TRUE(time.Run(handler->CheckReusableNode(here)));
  EXPECT_TRUE(time.Run(handler->CheckReusableNode(there)));
  handler->NodeReused(here.record);
  EXPECT_TRUE(time.Run(handler->CheckReusableNode(here)));
  EXPECT_FALSE(time.Run(handler->CheckReusableNode(there)));
}

// --- Candidates: kinds of machine and places of which the cloud may have none
// -----------------------------------

TEST_F(LaunchTest, TheNextCandidateIsTriedWithoutLosingAnAttempt) {
  config->launch_retries = 1;
  StartProvider();
  cloud->candidates = {"large here", "large there", "small here"};
  ScriptedAdapter::Creation lacking;
  lacking.kind = LaunchError::Kind::kCapacity;
  cloud->creations = {lacking, lacking, ScriptedAdapter::Creation()};
  time.Run(LaunchNode());
  EXPECT_THAT(Results(), ElementsAre("ready"));
  EXPECT_THAT(candidates,
              ElementsAre("large here lacks capacity", "large there lacks capacity", "small here created"));
  EXPECT_THAT(cloud->deleted, ElementsAre("machine-1", "machine-2")) << "each before the next is created";
  ASSERT_EQ(cloud->requested.size(), 3u);
  EXPECT_EQ(cloud->requested[1].candidate, 1u);
  EXPECT_EQ(Stored().external_id, "machine-3");
  EXPECT_THAT(*Stored().comment,
              ::testing::MatchesRegex(
                  "Launched as small here; no capacity for large here until ..:.. UTC, large there "
                  "until ..:.. UTC"));

  candidates.clear();
  time.Run(LaunchNode());
  EXPECT_THAT(candidates, ElementsAre("small here created")) << "shortages are remembered";
  time.Advance(Shortages::kLast);
  candidates.clear();
  time.Run(LaunchNode());
  EXPECT_THAT(candidates, ElementsAre("large here created"));
}

TEST_F(LaunchTest, TheCommentCostsNoWriteAndIsNoNoise) {
  StartProvider();
  time.Run(LaunchNode());
  const std::size_t writes = history.size();
  EXPECT_EQ(Stored().comment, std::nullopt);
  EXPECT_EQ(Stored().hourly_price, std::nullopt);
  history.clear();
  cloud->candidates = {"large here", "large there"};
  cloud->hourly_price = 0.25;
  time.Run(LaunchNode());
  EXPECT_EQ(history.size(), writes);
  EXPECT_EQ(Stored().comment, "Launched as large here, the first choice; 0.25 per hour");
  EXPECT_EQ(Stored().hourly_price, 0.25);
}

TEST_F(LaunchTest, AnAttemptFailsWhenEachCandidateWasTriedOnce) {
  config->launch_retries = 2;
  StartProvider();
  cloud->candidates = {"a", "b"};
  ScriptedAdapter::Creation lacking;
  lacking.kind = LaunchError::Kind::kCapacity;
  cloud->creations = {lacking};
  EXPECT_EQ(LaunchFails(), Verdict::kQuota) << "the request waits, or goes to another pool";
  EXPECT_THAT(Results(), ElementsAre("error.capacity", "error.capacity"));
  EXPECT_EQ(cloud->requested.size(), 4u);
}

TEST_F(LaunchTest, OnlyLackOfCapacityMovesOn) {
  config->launch_retries = 1;
  StartProvider();
  cloud->candidates = {"a", "b"};
  ScriptedAdapter::Creation broken;
  broken.kind = LaunchError::Kind::kStatus;
  cloud->creations = {broken, ScriptedAdapter::Creation()};
  EXPECT_EQ(LaunchFails(), Verdict::kFail);
  EXPECT_EQ(cloud->requested.size(), 1u);
  EXPECT_TRUE(candidates.empty());
}

}  // namespace
}  // namespace nodepool::driver::cloud
