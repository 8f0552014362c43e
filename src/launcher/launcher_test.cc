#include "launcher/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "testing/faulty_zk.h"
#include "testing/memory_zk.h"
#include "testing/scripted_driver.h"
#include "testing/virtual_time.h"

namespace nodepool::launcher {
namespace {

using std::chrono::seconds;
using store::Change;
using testing::MemoryZk;
using testing::Script;

// A launcher with scripted providers on an in-process ZooKeeper, in virtual time,
// and a client that behaves as Zuul does.
class LauncherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    zk_ = std::make_unique<MemoryZk>(time_.loop());
    client_ = zk_->Connect();
    client_store_ = std::make_unique<store::Store>(time_.loop(), *client_, random_);
    AddPool("cloud", "main", {"small", "large"});
  }

  void TearDown() override {
    for (auto& launcher : launchers_) StopLauncher(*launcher);
    time_.Run(client_->Close());
  }

  driver::PoolConfig& AddPool(std::string provider, std::string pool, std::vector<std::string> labels) {
    auto& config = config_->providers[ProviderName(provider)];
    auto changed = std::make_shared<driver::ProviderConfig>(config ? *config : driver::ProviderConfig());
    changed->name = ProviderName(provider);
    changed->driver = "scripted";
    auto pool_config = std::make_shared<driver::PoolConfig>();
    pool_config->name = PoolName(pool);
    for (const std::string& label : labels) {
      auto label_config = std::make_shared<driver::LabelConfig>();
      label_config->name = LabelName(label);
      label_config->cloud_image = "image";
      pool_config->labels[label_config->name] = label_config;
      config_->common.labels.try_emplace(label_config->name, config::Label{label_config->name, 0, {}});
    }
    changed->pools[pool_config->name] = pool_config;
    config = changed;
    return *pool_config;
  }

  struct Running {
    std::unique_ptr<zk::Client> client;
    std::unique_ptr<testing::FaultyZk> recorder;  // what the launcher talks to
    std::unique_ptr<Launcher> launcher;
    bool is_stopped = false;
  };

  Running& StartLauncher(std::string hostname = "np01") {
    auto running = std::make_unique<Running>();
    running->client = zk_->Connect();
    running->recorder = std::make_unique<testing::FaultyZk>(*running->client);
    Launcher::Options options{hostname, hostname + ".example.org", {}};
    running->launcher = std::make_unique<Launcher>(time_.loop(), random_, pool_, *running->recorder, drivers_,
                                                   config_, std::move(options));
    time_.Run(running->launcher->Start());
    launchers_.push_back(std::move(running));
    return *launchers_.back();
  }

  void StopLauncher(Running& running) {
    if (running.is_stopped) return;
    running.is_stopped = true;
    time_.Run(running.launcher->Stop());
    time_.Run(running.client->Close());
    time_.Run(running.launcher->Stop());
  }

  RequestId Request(std::vector<std::string> labels, std::function<void(NodeRequest&)> adjust = {}) {
    NodeRequest request;
    request.SetState(RequestState::kRequested, time_.loop().Now());
    for (std::string& label : labels) request.node_types.emplace_back(std::move(label));
    request.requestor = "test";
    if (adjust) adjust(request);
    return time_.Run(client_store_->CreateRequest("200", std::move(request), false));
  }

  std::optional<NodeRequest> Read(const RequestId& id) {
    auto stored = time_.Run(client_store_->ReadRequest(id));
    if (!stored) return std::nullopt;
    return stored->record;
  }
  std::optional<Node> Read(const NodeId& id) {
    auto stored = time_.Run(client_store_->ReadNode(id));
    if (!stored) return std::nullopt;
    return stored->record;
  }
  std::vector<NodeId> Nodes() { return time_.Run(client_store_->ListNodes()); }

  bool Await(std::function<bool()> condition, Duration limit = seconds(120)) {
    SteadyTime end = time_.loop().SteadyNow() + limit;
    while (!condition()) {
      if (time_.loop().SteadyNow() >= end) return false;
      time_.Advance(std::chrono::milliseconds(100));
    }
    return true;
  }
  bool AwaitState(const RequestId& id, RequestState state, Duration limit = seconds(120)) {
    return Await([&] { return Read(id) && Read(id)->state == state; }, limit);
  }

  // What a consumer does with a fulfilled request (coordination.md 12.1).
  std::vector<store::LockedNode> Take(const RequestId& id) {
    std::vector<store::LockedNode> taken;
    NodeRequest request = *Read(id);
    for (const NodeId& node : request.nodes) {
      auto locked = time_.Run(client_store_->TryLockNode(node));
      EXPECT_TRUE(locked) << "a fulfilled request's nodes are unlocked (BB-09)";
      if (!locked) continue;
      EXPECT_EQ(locked->record().allocated_to, id);
      taken.push_back(std::move(*locked));
    }
    time_.Run(client_store_->DeleteRequest(id));
    for (auto& node : taken) SetState(node, NodeState::kInUse);
    return taken;
  }
  void SetState(store::LockedNode& node, NodeState state) {
    WallTime now = time_.loop().Now();
    time_.Run(node.Update([state, now](Node& record) {
      record.SetState(state, now);
      return Change::kWrite;
    }));
  }
  void Return(std::vector<store::LockedNode>& nodes) {
    for (auto& node : nodes) {
      SetState(node, NodeState::kUsed);
      time_.Run(node.Unlock());
    }
    nodes.clear();
  }
  Script& script(std::string provider = "cloud") { return scripts_[ProviderName(provider)]; }

  testing::VirtualTime time_;
  SeededRandom random_{1};
  BlockingPool pool_{1};
  std::map<ProviderName, Script> scripts_;
  driver::Registry drivers_ = [this] {
    driver::Registry registry;
    registry.Add(std::make_unique<testing::ScriptedDriver>(scripts_));
    return registry;
  }();
  std::shared_ptr<driver::LoadedConfig> config_ = std::make_shared<driver::LoadedConfig>();
  std::unique_ptr<MemoryZk> zk_;
  std::unique_ptr<zk::Client> client_;
  std::unique_ptr<store::Store> client_store_;
  std::vector<std::unique_ptr<Running>> launchers_;
};

TEST_F(LauncherTest, ServesARequestFromCreationToDeletion) {  // coordination.17.6, BB-09
  StartLauncher();
  RequestId id = Request({"small"}, [](NodeRequest& request) { request.tenant_name = "t1"; });
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  NodeRequest request = *Read(id);
  ASSERT_EQ(request.nodes.size(), 1u);
  Node node = *Read(request.nodes[0]);
  EXPECT_EQ(node.state, NodeState::kReady);
  EXPECT_EQ(node.allocated_to, id);
  EXPECT_EQ(node.type, (std::vector<LabelName>{LabelName("small")}));
  EXPECT_EQ(node.tenant_name, "t1");
  EXPECT_EQ(node.requestor, "test");
  EXPECT_EQ(node.provider, ProviderName("cloud"));
  EXPECT_TRUE(node.launcher->starts_with("np01.example.org-PoolWorker.cloud-main-")) << *node.launcher;
  EXPECT_TRUE(node.created_time);

  auto nodes = Take(id);
  Return(nodes);
  EXPECT_TRUE(Await([&] { return Nodes().empty(); }));
  EXPECT_EQ(script().deleted.size(), 1u);
  EXPECT_TRUE(Await([&] {
    return time_.Run(client_->GetChildren("/nodepool/requests-lock"))->names.empty();
  })) << "the lock directory goes with the request (D-06)";
}

// The budget of ZooKeeper operations for a request of one node, its use and its
// deletion. The scripted driver itself writes twice (instance, ready).
TEST_F(LauncherTest, ZooKeeperOperationsPerNodeLife) {
  Running& running = StartLauncher();
  for (int round = 0; round < 2; ++round) {  // the first one makes the directories
    running.recorder->ForgetCalls();
    RequestId id = Request({"small"});
    ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
    auto nodes = Take(id);
    Return(nodes);
    ASSERT_TRUE(Await([&] { return Nodes().empty(); }));
    time_.Advance(std::chrono::minutes(5));
  }
  std::vector<std::string> writes;
  for (const auto& call : running.recorder->calls()) {
    if (call.is_write) writes.push_back(call.name + " " + call.path);
  }
  EXPECT_THAT(writes, ::testing::SizeIs(10));
  int reads = static_cast<int>(running.recorder->calls().size() - writes.size());
  EXPECT_LE(reads, 15);
}

TEST_F(LauncherTest, NodesComeInTheOrderOfTheLabels) {  // coordination.17.7, BB-02
  StartLauncher();
  RequestId id = Request({"small", "large", "small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  std::vector<std::string> labels;
  NodeRequest request = *Read(id);
  for (const NodeId& node : request.nodes) labels.push_back(Read(node)->type.front().value);
  EXPECT_EQ(labels, (std::vector<std::string>{"small", "large", "small"}));
}

TEST_F(LauncherTest, EmptyRequestIsFulfilledAtOnce) {  // BB-01
  StartLauncher();
  RequestId id = Request({});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_TRUE(Read(id)->nodes.empty());
}

TEST_F(LauncherTest, UnknownLabelFailsWithOneDeclinePerPool) {  // coordination.17.10, LA-25
  AddPool("cloud", "second", {"other"});
  StartLauncher();
  RequestId id = Request({"unknown"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFailed));
  EXPECT_EQ(Read(id)->declined_by.size(), 2u);
}

TEST_F(LauncherTest, ReusesAFreeNodeUnlessToldNotTo) {  // coordination.17.9, BB-10, BB-12
  StartLauncher();
  RequestId first = Request({"small"});
  ASSERT_TRUE(AwaitState(first, RequestState::kFulfilled));
  NodeId node = Read(first)->nodes[0];
  time_.Run(client_store_->DeleteRequest(first));
  ASSERT_TRUE(Await([&] { return Read(node)->allocated_to.empty(); })) << "BB-08";
  RequestId second = Request({"small"}, [](NodeRequest& request) { request.requestor = "other"; });
  ASSERT_TRUE(AwaitState(second, RequestState::kFulfilled));
  EXPECT_EQ(Read(second)->nodes[0], node);
  EXPECT_EQ(Read(node)->requestor, "other");
  time_.Run(client_store_->DeleteRequest(second));
  ASSERT_TRUE(Await([&] { return Read(node)->allocated_to.empty(); }));
  RequestId third = Request({"small"}, [](NodeRequest& request) { request.reuse = false; });
  ASSERT_TRUE(AwaitState(third, RequestState::kFulfilled));
  EXPECT_NE(Read(third)->nodes[0], node);
}

TEST_F(LauncherTest, WaitsAtThePoolsLimitAndGoesOnWhenANodeIsReturned) {  // LA-04, BB-31
  AddPool("cloud", "main", {"small"}).max_servers = 2;
  StartLauncher();
  RequestId first = Request({"small", "small"});
  ASSERT_TRUE(AwaitState(first, RequestState::kFulfilled));
  auto nodes = Take(first);
  RequestId second = Request({"small", "small"});
  ASSERT_TRUE(AwaitState(second, RequestState::kPending));
  RequestId third = Request({"small"});
  time_.Advance(seconds(30));
  EXPECT_EQ(Read(second)->state, RequestState::kPending);
  EXPECT_EQ(Read(third)->state, RequestState::kRequested) << "it would take what the second waits for (D-33)";
  EXPECT_EQ(script().launches, 2);
  Return(nodes);
  ASSERT_TRUE(AwaitState(second, RequestState::kFulfilled));
  EXPECT_EQ(script().most_at_once, 2);
  auto more = Take(second);
  Return(more);
  EXPECT_TRUE(AwaitState(third, RequestState::kFulfilled));
}

TEST_F(LauncherTest, DeclinesWhatIsLargerThanThePool) {  // BB-37
  AddPool("cloud", "main", {"small"}).max_servers = 1;
  StartLauncher();
  RequestId id = Request({"small", "small"});
  EXPECT_TRUE(AwaitState(id, RequestState::kFailed));
  EXPECT_EQ(script().launches, 0);
}

TEST_F(LauncherTest, AnUnusedNodeMakesRoomForAnotherLabel) {  // LA-76, BB-28, D-22
  AddPool("cloud", "main", {"small", "large"}).max_servers = 1;
  StartLauncher();
  RequestId first = Request({"small"});
  ASSERT_TRUE(AwaitState(first, RequestState::kFulfilled));
  time_.Run(client_store_->DeleteRequest(first));
  RequestId second = Request({"large"});
  EXPECT_TRUE(AwaitState(second, RequestState::kFulfilled));
  EXPECT_EQ(script().deleted.size(), 1u);
}

TEST_F(LauncherTest, FailedLaunchDeclinesAndFreesTheSiblings) {  // LA-21, D-11
  script().launch_error = [](int launch) -> std::optional<Error> {
    if (launch == 0) return Error(Verdict::kFail, "server went to ERROR");
    return std::nullopt;
  };
  StartLauncher();
  RequestId id = Request({"small", "large"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFailed));
  EXPECT_EQ(Read(id)->declined_by.size(), 1u);
  EXPECT_TRUE(Await([&] { return Nodes().size() == 1; })) << "the failed node is deleted";
  Node sibling = *Read(Nodes()[0]);
  EXPECT_EQ(sibling.state, NodeState::kReady);
  EXPECT_TRUE(sibling.allocated_to.empty());
}

TEST_F(LauncherTest, QuotaRefusalIsNoFailureAndUsesANewNode) {  // LA-85, BB-38
  script().launch_error = [](int launch) -> std::optional<Error> {
    if (launch < 2) return Error(Verdict::kQuota, "Quota exceeded");
    return std::nullopt;
  };
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(Read(id)->nodes[0], NodeId("0000000002"));
  EXPECT_TRUE(Await([&] { return Nodes().size() == 1; }));
}

TEST_F(LauncherTest, RequestDeletedDuringLaunchLeavesAFreeNode) {  // BB-07, coordination.17.25
  script().launch_time = seconds(10);
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kPending));
  time_.Run(client_store_->DeleteRequest(id));
  ASSERT_TRUE(Await([&] { return Nodes().size() == 1 && Read(Nodes()[0])->is_free(); }));
  EXPECT_TRUE(time_.Run(client_store_->NodeContenders(Nodes()[0])).empty());
}

TEST_F(LauncherTest, RequestDeletedWhileWaitingIsNoticedAtOnce) {
  AddPool("cloud", "main", {"small"}).max_servers = 1;
  StartLauncher();
  RequestId first = Request({"small"});
  ASSERT_TRUE(AwaitState(first, RequestState::kFulfilled));
  auto nodes = Take(first);
  RequestId second = Request({"small"});
  ASSERT_TRUE(AwaitState(second, RequestState::kPending));
  RequestId third = Request({"small"});
  time_.Run(client_store_->DeleteRequest(second));
  EXPECT_TRUE(AwaitState(third, RequestState::kPending)) << "it is the next in line now";
  Return(nodes);
  EXPECT_TRUE(AwaitState(third, RequestState::kFulfilled));
}

TEST_F(LauncherTest, DeadNodesAreDeletedOnceUnlocked) {  // coordination.17.17, 17.18, BB-17..19
  StartLauncher();
  for (NodeState state : {NodeState::kUsed, NodeState::kInUse, NodeState::kFailed, NodeState::kAborted,
                          NodeState::kBuilding, NodeState::kDeleting}) {
    Node node;
    node.SetState(state, time_.loop().Now());
    node.provider = ProviderName("cloud");
    node.pool = PoolName("main");
    time_.Run(client_store_->CreateNode(node));
  }
  Node kept;
  kept.provider = ProviderName("cloud");
  kept.SetState(NodeState::kHold, time_.loop().Now());
  NodeId held = time_.Run(client_store_->CreateNode(kept));
  kept.SetState(NodeState::kUsed, time_.loop().Now());
  kept.provider = ProviderName("elsewhere");
  NodeId foreign = time_.Run(client_store_->CreateNode(kept));
  EXPECT_TRUE(Await([&] { return Nodes() == std::vector<NodeId>({held, foreign}); }));
}

TEST_F(LauncherTest, FailingDeletionIsRepeatedAndTheNodeStaysUnlockedBetween) {  // BB-20
  script().delete_error = [](int deletion) -> std::optional<Error> {
    if (deletion < 3) return Error(Verdict::kRetry, "cloud is away");
    return std::nullopt;
  };
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  auto nodes = Take(id);
  NodeId node = nodes[0].id();
  Return(nodes);
  ASSERT_TRUE(Await([&] { return script().deletions == 1 && Read(node)->state == NodeState::kDeleting; }));
  EXPECT_TRUE(Await([&] { return time_.Run(client_store_->NodeContenders(node)).empty(); }));
  EXPECT_TRUE(Await([&] { return Nodes().empty(); }, std::chrono::minutes(5)));
  EXPECT_EQ(script().deletions, 4);
}

// A deletion that a lost session interrupted before it held the lock is not announced
// by any event; the sweep finds the node.
TEST_F(LauncherTest, InterruptedDeletionIsTakenUpAgain) {
  Running& running = StartLauncher();
  for (int i = 0; i < 20; ++i) {
    Node node;
    node.SetState(NodeState::kUsed, time_.loop().Now());
    node.provider = ProviderName("cloud");
    time_.Run(client_store_->CreateNode(node));
    zk_->ExpireSession(*running.client);
  }
  EXPECT_TRUE(Await([&] { return Nodes().empty(); }, std::chrono::minutes(5)));
}

TEST_F(LauncherTest, KeepsMinReadyNodes) {  // coordination.17.38, BB-14, BB-15
  config_->common.labels[LabelName("small")].min_ready = 2;
  StartLauncher();
  auto free = [&] {
    int count = 0;
    for (const NodeId& id : Nodes()) count += Read(id)->is_free() ? 1 : 0;
    return count;
  };
  ASSERT_TRUE(Await([&] { return free() == 2; }));
  EXPECT_TRUE(Await([&] { return time_.Run(client_store_->ListRequests()).empty(); }));
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_TRUE(Await([&] { return free() == 2; })) << "the node handed out is replaced";
  time_.Advance(std::chrono::minutes(2));
  EXPECT_EQ(Nodes().size(), 3u);
}

TEST_F(LauncherTest, MinReadyBacksOffAtCapacity) {  // D-27, LA-24
  AddPool("cloud", "main", {"small"}).max_servers = 1;
  config_->common.labels[LabelName("small")].min_ready = 3;
  StartLauncher();
  time_.Advance(std::chrono::minutes(5));
  EXPECT_EQ(script().launches, 1);
  auto children = time_.Run(client_->GetChildren("/nodepool/requests"));
  // Two requests a minute at most for the two missing nodes, besides the one served.
  EXPECT_LE(children->stat.cversion, 2 * (1 + 2 * 6));
}

TEST_F(LauncherTest, StopGivesRequestsBack) {  // D-24
  script().launch_time = std::chrono::hours(1);
  Running& running = StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kPending));
  StopLauncher(running);
  EXPECT_EQ(Read(id)->state, RequestState::kRequested);
  EXPECT_TRUE(Read(id)->declined_by.empty());
  EXPECT_TRUE(time_.Run(client_store_->NodeContenders(Nodes()[0])).empty());
}

TEST_F(LauncherTest, StopEndsWhenZooKeeperIsAway) {  // D-24
  script().launch_time = std::chrono::hours(1);
  Running& running = StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kPending));
  zk_->Disconnect(*running.client);
  SteadyTime before = time_.loop().SteadyNow();
  StopLauncher(running);
  EXPECT_LE(time_.loop().SteadyNow() - before, seconds(40));
}

TEST_F(LauncherTest, LostSessionDropsEverythingAndRecovers) {  // coordination.17.5, 17.39, BB-30
  script().launch_time = seconds(20);
  Running& running = StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kPending));
  zk_->ExpireSession(*running.client);
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled, std::chrono::minutes(5)));
  EXPECT_TRUE(Await([&] { return Nodes().size() == 1; })) << "the abandoned launch's node is deleted";
  EXPECT_EQ(time_.Run(client_->GetChildren("/nodepool/components/pool"))->names.size(), 1u);
}

TEST_F(LauncherTest, AnotherLauncherTakesOverFromADeadOne) {  // coordination.17.39, BB-21
  script().launch_time = seconds(20);
  Running& dead = StartLauncher("np01");
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kPending));
  StartLauncher("np02");
  zk_->Disconnect(*dead.client);
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled, std::chrono::minutes(5)));
  EXPECT_TRUE(Read(Read(id)->nodes[0])->launcher->starts_with("np02"));
  zk_->Reconnect(*dead.client);
  EXPECT_TRUE(Await([&] { return Nodes().size() == 1; }));
}

TEST_F(LauncherTest, TwoLaunchersNeverServeARequestTwice) {
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

TEST_F(LauncherTest, LostRequestIsResetWithItsNodes) {  // coordination.17.20, LA-63, D-34
  RequestId id = Request(
      {"small"}, [&](NodeRequest& request) { request.SetState(RequestState::kPending, time_.loop().Now()); });
  Node ready;
  ready.SetState(NodeState::kReady, time_.loop().Now());
  ready.provider = ProviderName("cloud");
  ready.pool = PoolName("main");
  ready.type = {LabelName("small")};
  ready.allocated_to = id;
  NodeId node = time_.Run(client_store_->CreateNode(ready));
  ready.SetState(NodeState::kInit, time_.loop().Now());
  NodeId init = time_.Run(client_store_->CreateNode(ready));
  StartLauncher();
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(Read(id)->nodes, (std::vector<NodeId>{node}));
  EXPECT_TRUE(Await([&] { return !Read(init); }));
}

TEST_F(LauncherTest, ProviderThatDoesNotStartHarmsNobodyAndIsTriedAgain) {  // D-30, LA-75
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

TEST_F(LauncherTest, ProviderWhoseStartHangsHarmsNobody) {  // D-30, D-35
  AddPool("hanging", "main", {"other"});
  script("hanging").start_time = std::chrono::hours(1);
  Running& running = StartLauncher();
  RequestId id = Request({"small"});
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_FALSE(running.launcher->is_ready());
  EXPECT_EQ(script("hanging").stops, 1) << "what a failed start left is stopped before the next";
}

TEST_F(LauncherTest, PoolThatLaunchesNothingKeepsRequestsWaiting) {  // D-25, S-waiting
  script().launches_nodes = false;
  StartLauncher();
  RequestId id = Request({"small"});
  time_.Advance(seconds(30));
  EXPECT_EQ(Read(id)->state, RequestState::kRequested);
  EXPECT_TRUE(Read(id)->declined_by.empty());
  Node ready;
  ready.SetState(NodeState::kReady, time_.loop().Now());
  ready.provider = ProviderName("cloud");
  ready.pool = PoolName("main");
  ready.type = {LabelName("small")};
  time_.Run(client_store_->CreateNode(ready));
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
}

TEST_F(LauncherTest, TenantLimitDefersOnlyThatTenant) {  // LA-09
  config_->common.tenant_limits["t1"] = {{"instances", 2}};
  StartLauncher();
  auto of_tenant = [](NodeRequest& request) { request.tenant_name = "t1"; };
  RequestId a = Request({"small", "small"}, of_tenant);
  ASSERT_TRUE(AwaitState(a, RequestState::kFulfilled));
  auto nodes = Take(a);
  RequestId b = Request({"small", "small"}, of_tenant);
  RequestId c = Request({"small", "small", "small", "small"});
  ASSERT_TRUE(AwaitState(c, RequestState::kFulfilled));
  EXPECT_EQ(Read(b)->state, RequestState::kRequested);
  Return(nodes);
  EXPECT_TRUE(AwaitState(b, RequestState::kFulfilled));
}

TEST_F(LauncherTest, YieldsToThePreferredProviderUntilItIsPaused) {  // LA-92
  AddPool("high", "main", {"small"}).max_servers = 1;
  AddPool("high", "main", {"small"}).priority = 1;
  const_cast<driver::PoolConfig&>(*config_->providers[ProviderName("high")]->pools.begin()->second)
      .max_servers = 1;
  StartLauncher();
  RequestId first = Request({"small"});
  ASSERT_TRUE(AwaitState(first, RequestState::kFulfilled));
  auto nodes = Take(first);
  EXPECT_EQ(nodes[0].record().provider, ProviderName("high"));
  RequestId second = Request({"small"});
  ASSERT_TRUE(AwaitState(second, RequestState::kPending));
  RequestId third = Request({"small"});
  ASSERT_TRUE(AwaitState(third, RequestState::kFulfilled));
  EXPECT_EQ(Read(Read(third)->nodes[0])->provider, ProviderName("cloud"));
  EXPECT_EQ(Read(second)->state, RequestState::kPending);
  Return(nodes);
  EXPECT_TRUE(AwaitState(second, RequestState::kFulfilled));
}

TEST_F(LauncherTest, HeldAndReadyNodesAgeOut) {  // coordination.17.23, LA-55..58
  config_->common.labels[LabelName("small")].max_ready_age = seconds(100);
  StartLauncher();
  Node node;
  node.provider = ProviderName("cloud");
  node.pool = PoolName("main");
  node.type = {LabelName("small")};
  node.SetState(NodeState::kReady, time_.loop().Now());
  time_.Run(client_store_->CreateNode(node));
  node.SetState(NodeState::kHold, time_.loop().Now());
  node.hold_expiration = 1;
  time_.Run(client_store_->CreateNode(node));
  node.hold_expiration = 0;
  NodeId kept = time_.Run(client_store_->CreateNode(node));
  EXPECT_TRUE(Await([&] { return Nodes() == std::vector<NodeId>({kept}); }, std::chrono::minutes(5)));
}

TEST_F(LauncherTest, MalformedRecordsDisturbNobody) {  // coordination.17.22, D-08, BB-35
  StartLauncher();
  zk::CreateOp ops[] = {{"/nodepool/requests/200-0000000900", "{not json", zk::CreateMode::kPersistent},
                        {"/nodepool/requests/nodash", "{}", zk::CreateMode::kPersistent},
                        {"/nodepool/nodes/0000000900", R"({"state": "bogus"})", zk::CreateMode::kPersistent}};
  for (auto& op : ops) (void)time_.Run(zk::CreateWithParents(*client_, op.path, op.data, op.mode));
  RequestId id = Request({"small"}, [](NodeRequest& request) {
    request.requestor_data = "opaque";
    request.unknown["jenkins_label"] = "kept";
  });
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(Read(id)->requestor_data, "opaque");
  EXPECT_EQ(Read(id)->unknown.at("jenkins_label"), "kept");
}

}  // namespace
}  // namespace nodepool::launcher
