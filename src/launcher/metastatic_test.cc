// Nodes that are slots of other nodes: whole launchers with the metastatic driver on top
// of the simulated cloud.
#include <boost/json.hpp>

#include "driver/cloud/adapter.h"
#include "driver/cloud/cloud_driver.h"
#include "driver/testing/contract.h"
#include "drivers/fake/fake_driver.h"
#include "drivers/metastatic/backing_nodes.h"
#include "drivers/metastatic/metastatic_adapter.h"
#include "drivers/metastatic/metastatic_driver.h"
#include "launcher/launcher_fixture_for_test.h"
#include "model/node_request.h"

namespace nodepool::launcher {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kOwner = "NodePool:metastatic:meta";

// Metastatic providers whose nodes are scanned by the test.
class ScannedMetastaticDriver : public drivers::MetastaticDriver {
 public:
  explicit ScannedMetastaticDriver(driver::cloud::HostKeyScan scan) : scan_(std::move(scan)) {}
  std::unique_ptr<driver::Provider> CreateProvider(
      driver::ProviderEnvironment environment,
      std::shared_ptr<const driver::ProviderConfig> config) override {
    auto make = [&](const driver::cloud::AdapterEnvironment& of_adapter) {
      return std::make_unique<drivers::MetastaticAdapter>(of_adapter, environment.records, config);
    };
    return driver::cloud::MakeCloudProvider(environment, config, make, scan_);
  }

 private:
  driver::cloud::HostKeyScan scan_;
};

class MetastaticTest : public LauncherFixture {
 protected:
  void SetUp() override {
    LauncherFixture::SetUp();
    intervals_.cleanup = seconds(10);
    auto fake = std::make_unique<drivers::FakeDriver>();
    clouds_ = &fake->clouds();
    drivers_.Add(std::move(fake));
    drivers_.Add(std::make_unique<ScannedMetastaticDriver>(
        [this](std::string, int, bool, SteadyTime deadline) { return Scan(deadline); }));
  }
  Task<std::vector<std::string>> Scan(SteadyTime deadline) {
    if (failing_scans_ > 0 && failing_scans_-- > 0) {
      co_await time_.loop().SleepUntil(deadline);
      throw Error(Verdict::kRetry, "no answer");
    }
    std::vector<std::string> keys{"ssh-ed25519 SCANNED"};
    co_return keys;
  }

  // `label`: more settings of the user label; `pool`: of its pool; `simulation`: of the cloud.
  void Load(std::string label = "max-parallel-jobs: 2, grace-time: 2", std::string pool = "",
            std::string simulation = "") {
    LoadYaml(R"(
labels: [{name: backing}, {name: user}, {name: other-user}]
providers:
- {name: cloud, driver: fake, cloud: simulated, cloud-images: [{name: image, image-name: Fake Precise, username: zuul}],
   pools: [{name: main, node-attributes: {backattr: back, testattr: backing},
            labels: [{name: backing, cloud-image: image, min-ram: 8192}]}],
   simulation: {)" +
             simulation + R"(}}
- {name: meta, driver: metastatic, pools: [{name: main, node-attributes: {metaattr: meta, testattr: metastatic}, )" +
             pool + R"(labels: [{name: user, backing-label: backing, )" + label + "}]}]}\n");
  }
  void Start() {
    Load();
    StartLauncher();
  }

  // The user node of a new request, taken as its consumer does.
  store::LockedNode UseOne() { return std::move(Use({"user"}).at(0)); }
  NodeId BackingOf(const Node& user) {
    auto place = drivers::ParsePlace(user.driver_data.value());
    return place ? place->backing_node : NodeId();
  }
  std::vector<NodeId> BackingNodes() {
    std::vector<NodeId> found;
    for (const NodeId& id : Nodes()) {
      if (std::optional<Node> node = Read(id); node && node->provider == ProviderName("cloud"))
        found.push_back(id);
    }
    return found;
  }
  std::optional<drivers::BackingNode> Account(const NodeId& id) {
    std::optional<Node> node = Read(id);
    return node ? drivers::ParseBackingNode(node->user_data.value(), kOwner) : std::nullopt;
  }
  std::vector<RequestId> Requests() { return time_.Run(client_store_->requests.List()); }
  drivers::FakeCloud& cloud() { return *clouds_->Find(ProviderName("cloud")); }

  // As an operator's program may that asks nobody.
  Task<> HoldUnlocked(NodeId id) {
    auto hold = [this](Node& node) {
      node.SetState(NodeState::kHold, time_.loop().Now());
      return Change::kWrite;
    };
    co_await client_store_->nodes.UpdateUnlocked(std::move(id), hold);
  }

  drivers::FakeClouds* clouds_ = nullptr;
  int failing_scans_ = 0;
};

TEST_F(MetastaticTest, UsersShareABackingNodeWhichIsReleasedWhenIdle) {  // M-basic
  Start();
  store::LockedNode first = UseOne();
  const Node& node = first.record();
  NodeId backing = BackingOf(node);
  std::optional<Node> record = Read(backing);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->state, NodeState::kInUse);
  EXPECT_TRUE(IsLocked(backing));
  EXPECT_EQ(time_.Run(client_store_->nodes.Owner(backing)), kOwner);
  EXPECT_EQ(Account(backing)->slots, 2);
  EXPECT_EQ(Account(backing)->label, LabelName("user"));
  EXPECT_THAT(Requests(), IsEmpty()) << "the request for the backing node is gone";
  EXPECT_EQ(node.slot, 0);
  EXPECT_EQ(node.interface_ip, record->interface_ip);
  EXPECT_EQ(node.username, record->username);
  EXPECT_EQ(node.host_keys, record->host_keys);
  EXPECT_EQ(node.cloud, record->cloud);
  EXPECT_EQ(node.region, record->region);
  EXPECT_EQ(node.az, record->az);
  EXPECT_EQ(node.host_id, std::nullopt);
  EXPECT_EQ(node.image_id, "unused");
  EXPECT_EQ(node.external_id, boost::json::value(first.id().str()));
  EXPECT_EQ(node.attributes,
            boost::json::parse(R"({"backattr": "back", "testattr": "metastatic", "metaattr": "meta"})"));
  EXPECT_EQ(node.resources, (Resources{{"cores", 0}, {"instances", 1}, {"ram", 0}}));
  EXPECT_EQ(node.driver_data.value().at("node"), boost::json::value(first.id().str()));
  EXPECT_EQ(node.driver_data.value().at("metadata").at("nodepool_provider_name"), "meta");

  store::LockedNode second = UseOne();
  EXPECT_EQ(BackingOf(second.record()), backing);
  EXPECT_EQ(second.record().slot, 1);
  store::LockedNode third = UseOne();
  EXPECT_NE(BackingOf(third.record()), backing);

  Return(first);
  time_.Advance(seconds(1));
  store::LockedNode fourth = UseOne();
  EXPECT_EQ(BackingOf(fourth.record()), backing) << "the freed slot of the elder one is used again";
  EXPECT_EQ(fourth.record().slot, 0);
  Return(second);
  Return(fourth);
  Return(third);
  EXPECT_TRUE(Await([&] { return Nodes().empty(); }, seconds(10)));
  EXPECT_TRUE(cloud().servers().empty());
}

TEST_F(MetastaticTest, ManyRequestsAtOnceTakeNoMoreBackingNodesThanTheyNeed) {  // M-basic
  Start();
  std::vector<RequestId> requests;
  for (int i = 0; i < 7; ++i) requests.push_back(Request({"user"}));
  for (const RequestId& id : requests) EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(BackingNodes().size(), 4u);
  std::set<std::pair<NodeId, std::int64_t>> places;
  for (const RequestId& id : requests) places.emplace(BackingOf(NodeOf(id)), NodeOf(id).slot.value_or(-1));
  EXPECT_EQ(places.size(), 7u);
}

TEST_F(MetastaticTest, ThePoolAnnouncesItsPriority) {  // M-basic
  Load("max-parallel-jobs: 2", "priority: 7, ");
  StartLauncher();
  std::map<std::string, std::int64_t> priorities;
  for (const std::string& name : Children("/nodepool/components/pool")) {
    auto data = time_.Run(client_->Get("/nodepool/components/pool/" + name));
    Component pool = *ParseComponent(ComponentKind::kPool, data->data);
    priorities[pool.provider_name.value] = pool.priority;
  }
  EXPECT_EQ(priorities, (std::map<std::string, std::int64_t>{{"cloud", 100}, {"meta", 7}}));
}

TEST_F(MetastaticTest, MaxServersOfThePoolLimitsUserNodes) {  // M-basic
  Load("max-parallel-jobs: 2", "max-servers: 3, ");
  StartLauncher();
  std::vector<store::LockedNode> used;
  for (int i = 0; i < 3; ++i) used.push_back(UseOne());
  RequestId waiting = Request({"user"});
  time_.Advance(seconds(20));
  EXPECT_NE(Read(waiting)->state, RequestState::kFulfilled);
  Return(used.front());
  EXPECT_TRUE(AwaitState(waiting, RequestState::kFulfilled));
}

TEST_F(MetastaticTest, SlotsAreKnownAfterARestart) {  // M-restart
  Start();
  store::LockedNode first = UseOne();
  StopLauncher(*launchers_.back());
  StartLauncher("np02");
  store::LockedNode second = UseOne();
  EXPECT_EQ(BackingOf(second.record()), BackingOf(first.record()));
  EXPECT_EQ(second.record().slot, 1);
  store::LockedNode third = UseOne();
  EXPECT_NE(BackingOf(third.record()), BackingOf(first.record()));
}

// Records of the Python implementation, which do not list the users.
TEST_F(MetastaticTest, BackingNodesOfThePythonImplementationAreTakenOver) {  // M-restart
  Start();
  store::LockedNode first = UseOne();
  NodeId backing = BackingOf(first.record());
  StopLauncher(*launchers_.back());
  ChangeNode(backing, [](Node& node) {
    node.user_data =
        R"({"owner": "NodePool:metastatic:meta", "label": "user", "slots": 2, "failed": false, "launched": 1700000000.5})";
  });
  StartLauncher("np02");
  store::LockedNode second = UseOne();
  EXPECT_EQ(BackingOf(second.record()), backing);
  EXPECT_EQ(second.record().slot, 1) << "slot 0 is the first user's, according to its own record";
  Return(first);
  Return(second);
  EXPECT_TRUE(Await([&] { return Nodes().empty(); }, seconds(20)));
}

TEST_F(MetastaticTest, ARecordLockedByAnotherClientIsNotTrusted) {
  Start();
  NodeId forged = AddNode(NodeState::kReady);
  auto locked = time_.Run(client_store_->nodes.TryLock(forged, "client"));
  time_.Run(locked->Update([](Node& node) {
    node.user_data = R"({"owner": "NodePool:metastatic:meta", "label": "user", "slots": 2})";
    node.state = NodeState::kInUse;
    return Change::kWrite;
  }));
  store::LockedNode used = UseOne();
  EXPECT_NE(BackingOf(used.record()), forged);
  time_.Advance(minutes(2));
  EXPECT_EQ(Read(forged)->state, NodeState::kInUse);
}

TEST_F(MetastaticTest, BackingNodesOfAnUnknownLabelAreReleasedWithoutGrace) {  // M-label-gone
  Load("max-parallel-jobs: 2, grace-time: 3600");
  Running& before = StartLauncher();
  store::LockedNode first = UseOne();
  NodeId backing = BackingOf(first.record());
  StopLauncher(before);
  drivers::BackingNode renamed = *Account(backing);
  renamed.label = LabelName("gone");
  ChangeNode(backing, [&](Node& node) { node.user_data = drivers::ToUserData(renamed, kOwner); });
  StartLauncher("np02");
  store::LockedNode second = UseOne();
  EXPECT_NE(BackingOf(second.record()), backing);
  Return(first);
  EXPECT_TRUE(Await([&] { return !Read(backing); }, seconds(10)));
}

TEST_F(MetastaticTest, ABackingNodeWhoseKeysCannotBeReadGetsNoMoreUsers) {  // M-nodescan
  Load("max-parallel-jobs: 3, grace-time: 3600, host-key-checking: true");
  StartLauncher();
  store::LockedNode first = UseOne();
  NodeId backing = BackingOf(first.record());
  EXPECT_EQ(first.record().host_keys, std::vector<std::string>{"ssh-ed25519 SCANNED"});
  failing_scans_ = 1;
  RequestId request = Request({"user"});
  ASSERT_TRUE(AwaitState(request, RequestState::kFulfilled, minutes(10)));
  EXPECT_NE(BackingOf(NodeOf(request)), backing) << "the next attempt is made elsewhere";
  EXPECT_TRUE(Account(backing)->has_failed);
  EXPECT_EQ(Read(first.id())->state, NodeState::kInUse) << "the user of a slot keeps it";
  Return(first);
  EXPECT_TRUE(Await([&] { return !Read(backing); }, seconds(10)));
}

TEST_F(MetastaticTest, AnIdleBackingNodeStaysUntilItIsOldEnough) {  // M-min-retention
  Load("max-parallel-jobs: 2, grace-time: 2, min-retention-time: 300");
  StartLauncher();
  store::LockedNode first = UseOne();
  NodeId backing = BackingOf(first.record());
  Return(first);
  time_.Advance(seconds(200));
  EXPECT_EQ(Read(backing)->state, NodeState::kInUse);
  EXPECT_TRUE(Await([&] { return !Read(backing); }, seconds(120)));
}

TEST_F(MetastaticTest, AnOldBackingNodeGetsNoNewUsers) {  // M-max-age
  Load("max-parallel-jobs: 3, grace-time: 3600, max-age: 100");
  StartLauncher();
  store::LockedNode first = UseOne();
  store::LockedNode second = UseOne();
  NodeId backing = BackingOf(first.record());
  EXPECT_EQ(BackingOf(second.record()), backing);
  time_.Advance(seconds(101));
  store::LockedNode third = UseOne();
  EXPECT_NE(BackingOf(third.record()), backing);
  Return(first);
  time_.Advance(seconds(5));
  EXPECT_EQ(Read(backing)->state, NodeState::kInUse) << "it still has a user";
  Return(second);
  EXPECT_TRUE(Await([&] { return !Read(backing); }, seconds(10)));
}

TEST_F(MetastaticTest, AUserNodeOutlivesItsBackingNode) {  // M-backing-vanished
  Start();
  store::LockedNode first = UseOne();
  NodeId backing = BackingOf(first.record());
  time_.Run(zk::DeleteRecursive(*client_, "/nodepool/nodes/" + backing.str()));
  time_.Advance(seconds(30));
  EXPECT_EQ(Read(first.id())->state, NodeState::kInUse);
  Return(first);
  EXPECT_TRUE(Await([&] { return !Read(first.id()); }, seconds(10)));
  store::LockedNode next = UseOne();
  EXPECT_NE(BackingOf(next.record()), backing);
}

TEST_F(MetastaticTest, AFailedRequestForABackingNodeFailsTheAttemptAndIsRemoved) {  // D-84
  Load("max-parallel-jobs: 2", "", "create-failure-rate: 1");
  StartLauncher();
  RequestId request = Request({"user"});
  EXPECT_TRUE(AwaitState(request, RequestState::kFailed, minutes(10)));
  EXPECT_THAT(
      WhyFailed(*Read(request)),
      AllOf(HasSubstr("no node of its backing label backing could be had: "), HasSubstr("cloud main: ")));
  DeleteRequest(request);
  EXPECT_TRUE(Await([&] { return Requests().empty() && Nodes().empty(); }, minutes(2)));
}

TEST_F(MetastaticTest, ABackingNodeThatAnOperatorHoldsIsLeftToThem) {  // D-84
  Start();
  TaskGroup operators(time_.loop(), log::Logger("operator"));
  NodeId held;
  Subscription watch = WatchRequests([&](const RequestId&, const store::StoredRequest& request) {
    if (request.record.requestor != kOwner || request.record.nodes.empty() || !held.empty()) return;
    held = request.record.nodes.front();
    operators.Spawn("hold", HoldUnlocked(held));
  });
  store::LockedNode user = UseOne();
  EXPECT_NE(BackingOf(user.record()), held);
  EXPECT_EQ(Read(held)->state, NodeState::kHold);
  EXPECT_FALSE(IsLocked(held));
  time_.Run(operators.Stop());
}

TEST_F(MetastaticTest, RequestsOfADeadLauncherVanishWithIt) {  // D-84
  Load("max-parallel-jobs: 2", "", "create-latency: 100");
  Running& dead = StartLauncher();
  RequestId request = Request({"user"});
  ASSERT_TRUE(Await([&] { return Requests().size() == 2u; }));
  Kill(dead);
  StartLauncher("np02");
  EXPECT_TRUE(AwaitState(request, RequestState::kFulfilled, minutes(10)));
  EXPECT_EQ(Requests().size(), 1u);
  auto nodes = Take(request);
  Return(nodes);
  EXPECT_TRUE(Await([&] { return BackingNodes().size() <= 1u; }, minutes(10)));
}

// A program whose requests outlive its session was killed before it claimed the node.
TEST_F(MetastaticTest, ARequestThatAFormerProgramLeftIsServedToTheEnd) {  // D-84
  Start();
  RequestId left = Request(
      {"backing"}, [](NodeRequest& request) { request.requestor = kOwner; }, "100");
  EXPECT_TRUE(Await([&] { return Requests().empty(); }, minutes(1)));
  EXPECT_TRUE(Await([&] { return Nodes().empty() && cloud().servers().empty(); }, minutes(2)))
      << "it has no users";
}

TEST_F(MetastaticTest, TwoLaunchersShareBackingNodes) {  // D-84
  Load("max-parallel-jobs: 4, grace-time: 2");
  StartLauncher("np01");
  StartLauncher("np02");
  for (int round = 0; round < 5; ++round) {
    std::vector<RequestId> requests;
    for (int i = 0; i < 16; ++i) requests.push_back(Request({"user"}));
    for (const RequestId& id : requests) ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
    std::set<std::pair<NodeId, std::int64_t>> places;
    for (const RequestId& id : requests) places.emplace(BackingOf(NodeOf(id)), NodeOf(id).slot.value_or(-1));
    EXPECT_EQ(places.size(), 16u) << "no slot is given out twice";
    for (const RequestId& id : requests) {
      auto nodes = Take(id);
      Return(nodes);
    }
    time_.Advance(std::chrono::milliseconds(700));
  }
  EXPECT_TRUE(Await([&] { return Nodes().empty(); }, minutes(1)));
  EXPECT_TRUE(cloud().servers().empty());
}

TEST_F(MetastaticTest, ALauncherThatDiesLeavesNoSlotInUse) {  // D-84
  Load("max-parallel-jobs: 4, grace-time: 2");
  Running& dead = StartLauncher("np01");
  StartLauncher("np02");
  std::vector<RequestId> requests;
  for (int i = 0; i < 12; ++i) requests.push_back(Request({"user"}));
  time_.Advance(std::chrono::milliseconds(150));
  Kill(dead);
  for (const RequestId& id : requests) ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled, minutes(5)));
  for (const RequestId& id : requests) {
    auto nodes = Take(id);
    Return(nodes);
  }
  EXPECT_TRUE(Await([&] { return Nodes().empty(); }, minutes(5)));
}

TEST_F(MetastaticTest, AUserThatAnOperatorErasedGivesItsSlotBack) {
  Start();
  store::LockedNode first = UseOne();
  NodeId backing = BackingOf(first.record());
  time_.Run(zk::DeleteRecursive(*client_, "/nodepool/nodes/" + first.id().str()));
  EXPECT_TRUE(Await([&] { return !Read(backing); }, minutes(2)));
}

// As `nodepool delete --now` does it, which follows no records.
TEST_F(MetastaticTest, TheToolsOfACommandGiveASlotBack) {
  Start();
  store::LockedNode first = UseOne();
  store::LockedNode second = UseOne();
  NodeId backing = BackingOf(first.record());
  ASSERT_EQ(BackingOf(second.record()), backing);
  auto tools = drivers::MetastaticDriver().CreateOperatorTools(
      {{time_.loop(), random_, pool_}, *client_store_}, config_->providers.at(ProviderName("meta")));
  for (int time = 0; time < 2; ++time) {
    time_.Run(tools->DeleteResources(first.id(), first.record()));
    EXPECT_EQ(Account(backing)->users, (std::map<int, NodeId>{{1, second.id()}}));
  }
  time_.Run(tools->DeleteResources(NodeId("1"), Node()));
  time_.Run(tools->Stop());
}

TEST_F(MetastaticTest, AChangedConfigurationKeepsBackingNodesAndUsers) {
  Load("max-parallel-jobs: 2, grace-time: 3600");
  Running& running = StartLauncher();
  store::LockedNode first = UseOne();
  NodeId backing = BackingOf(first.record());
  Load("max-parallel-jobs: 5, grace-time: 1800");
  running.launcher->Reconfigure(config_);
  time_.Advance(seconds(5));
  store::LockedNode second = UseOne();
  EXPECT_EQ(BackingOf(second.record()), backing);
  EXPECT_EQ(Account(backing)->slots, 2) << "the number of slots is that of the time when it was made";
  store::LockedNode third = UseOne();
  EXPECT_EQ(Account(BackingOf(third.record()))->slots, 5);
}

// The contract of adapters, with backing nodes of a real launcher.
TEST_F(MetastaticTest, TheAdapterKeepsTheContract) {
  Load("max-parallel-jobs: 2, grace-time: 1");
  auto config = std::make_shared<drivers::MetastaticConfig>(
      driver::cloud::As<drivers::MetastaticConfig>(*config_->providers.at(ProviderName("meta"))));
  config_->providers.erase(ProviderName("meta"));
  StartLauncher();
  auto node_watch = WatchNodes([](const NodeId&, const Node&) {});
  auto request_watch = WatchRequests([](const RequestId&, const store::StoredRequest&) {});
  store::ImageCache images(time_.loop(), *client_);
  driver::RecordsEnvironment records{*client_store_, *watched_nodes_, images, watched_requests_.get()};
  driver::cloud::Framework framework;
  drivers::MetastaticAdapter adapter({{time_.loop(), random_, pool_}, framework}, records, config);
  adapter.Start();
  auto pool = config->pools.at(PoolName("main"));
  driver::testing::Subject subject{time_.loop(), adapter, ProviderName("meta"), pool,
                                   pool->labels.at(LabelName("user"))};
  subject.lists_machines = false;
  for (const auto& result :
       time_.Run(driver::testing::RunContract(std::move(subject)), std::chrono::hours(1000)))
    EXPECT_NE(result.status, driver::testing::CheckResult::Status::kFailed)
        << result.check << ": " << result.detail;
  time_.Run(adapter.Stop());
}

}  // namespace
}  // namespace nodepool::launcher
