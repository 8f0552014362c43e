#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/testing/virtual_time.h"
#include "drivers/static/static_driver.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::drivers {

namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using Ids = std::vector<NodeId>;

// Hosts that answer as the test says.
struct SimulatedHosts {
  explicit SimulatedHosts(Loop& loop) : loop(loop) {}

  HostContact Contact() {
    return {[this](std::string host, int, bool wants_keys, SteadyTime deadline) {
              return Scan(std::move(host), wants_keys, deadline);
            },
            [this](std::string name) { return Resolve(std::move(name)); }};
  }
  Task<std::vector<std::string>> Scan(std::string host, bool wants_keys, SteadyTime deadline) {
    ++scans;
    bool is_dead = dead.contains(host);
    co_await loop.SleepUntil(is_dead ? deadline : loop.SteadyNow() + std::chrono::milliseconds(10));
    if (is_dead) throw Error(Verdict::kRetry, "timeout");
    std::vector<std::string> keys;
    if (wants_keys) keys = {"ssh-ed25519 KEY-OF-" + host, "ssh-rsa KEY-OF-" + host};
    co_return keys;
  }
  Task<boost::asio::ip::address> Resolve(std::string name) {
    if (unknown.contains(name)) throw Error(Verdict::kRetry, "no such host");
    co_return boost::asio::ip::make_address(name.starts_with("six") ? "2001:db8::1" : "192.0.2.1");
  }

  Loop& loop;
  std::set<std::string> dead;
  std::set<std::string> unknown;
  int scans = 0;
};

// The provider of one launcher.
struct Launcher {
  Launcher(testing::VirtualTime& time, testing::MemoryZk& zk, SimulatedHosts& hosts)
      : time(time), hosts(hosts), client(zk.Connect()) {
    nodes.Start();
    images.Start();
    time.Run(nodes.WaitSynced());
  }
  ~Launcher() {
    if (provider) time.Run(provider->Stop());
    if (old) time.Run(old->Stop());
    time.Run(nodes.Stop());
    time.Run(images.Stop());
    time.Run(client->Close());
  }

  // As on a changed configuration.
  void Configure(std::shared_ptr<const StaticConfig> config) {
    if (provider) provider->Idle();
    old = std::move(provider);
    driver::ProviderEnvironment environment{{time.loop(), random, blocking_pool}, records, [] {}};
    environment.report_notices = [this](std::vector<std::string> now) {
      notices = std::move(now);
      ++reports;
    };
    provider = std::make_unique<StaticProvider>(std::move(environment), config, hosts.Contact());
    time.Run(provider->Start());
    if (old) time.Run(old->Stop());
    time.Advance(seconds(10));
  }

  testing::VirtualTime& time;
  SimulatedHosts& hosts;
  std::unique_ptr<zk::Client> client;
  static inline std::uint64_t last_seed = 0;
  SeededRandom random{++last_seed};  // no two launchers draw the same numbers
  BlockingPool blocking_pool{0};
  store::Store store{time.loop(), *client, random};
  store::NodeCache nodes{time.loop(), *client};
  store::ImageCache images{time.loop(), *client};
  driver::RecordsEnvironment records{store, nodes, images};
  std::unique_ptr<StaticProvider> provider;
  std::unique_ptr<StaticProvider> old;
  std::vector<std::string> notices;
  int reports = 0;
};

StaticNode Host(std::string name, std::vector<std::string> labels, int slots = 1) {
  StaticNode node;
  node.name = std::move(name);
  for (std::string& label : labels) node.labels.emplace_back(std::move(label));
  node.connection.username = "zuul";
  node.max_parallel_jobs = slots;
  return node;
}

std::shared_ptr<StaticConfig> Config(std::vector<StaticNode> nodes) {
  auto config = std::make_shared<StaticConfig>();
  config->name = ProviderName("static/provider");
  auto pool = std::make_shared<StaticPool>();
  pool->name = PoolName("main");
  pool->node_attributes = boost::json::object{{"zone", "lab"}};
  pool->nodes = std::move(nodes);
  config->pools[pool->name] = pool;
  return config;
}

class StaticProviderTest : public ::testing::Test {
 protected:
  std::vector<const store::StoredNode*> Ready() {
    std::vector<const store::StoredNode*> ready;
    for (const NodeId& id : launcher.nodes.InState(NodeState::kReady))
      ready.push_back(launcher.nodes.Find(id));
    return ready;
  }
  Ids ReadyIds() {
    Ids ids;
    for (const store::StoredNode* node : Ready()) ids.push_back(node->id);
    return ids;
  }
  // What Zuul and DeletedNodeWorker do with a node after its job.
  void UseAndDelete(const NodeId& id) {
    SetState(id, NodeState::kUsed);
    Remove(id);
    time.Advance(seconds(10));
  }
  void SetState(const NodeId& id, NodeState state) {
    auto change = [this, state](Node& record) {
      record.SetState(state, time.loop().Now());
      return store::Change::kWrite;
    };
    time.Run(launcher.store.nodes.UpdateUnlocked(id, change));
    time.Advance(seconds(1));
  }
  void Remove(const NodeId& id) {
    auto node = time.Run(launcher.store.nodes.TryLock(id));
    ASSERT_TRUE(node);
    time.Run(node->Remove());
  }
  void Resync() {
    time.Run(launcher.provider->CleanupLeakedResources());
    time.Advance(seconds(10));
  }
  bool CanBeReused(const store::StoredNode& node) {
    store::StoredRequest request;
    auto handler =
        launcher.provider->RequestHandler(launcher.provider->config().pools.begin()->second, request);
    return time.Run(handler->CheckReusableNode(node));
  }

  testing::VirtualTime time;
  testing::MemoryZk zk{time.loop()};
  SimulatedHosts hosts{time.loop()};
  Launcher launcher{time, zk, hosts};
};

// S-basic, S-multilabel
TEST_F(StaticProviderTest, RegistersOneRecordForAHost) {
  launcher.Configure(Config({Host("host", {"red", "blue"})}));
  ASSERT_EQ(Ready().size(), 1u);
  const Node& record = Ready()[0]->record;
  EXPECT_EQ(record.provider, ProviderName("static/provider"));
  EXPECT_EQ(record.pool, PoolName("main"));
  EXPECT_EQ(record.launcher, "static driver");
  EXPECT_EQ(record.type, (std::vector<LabelName>{LabelName("red"), LabelName("blue")}));
  EXPECT_EQ(record.hostname, "host");
  EXPECT_EQ(record.interface_ip, "host");
  EXPECT_EQ(record.external_id, "host");
  EXPECT_EQ(record.public_ipv4, "192.0.2.1");
  EXPECT_EQ(record.username, "zuul");
  EXPECT_EQ(record.connection_port, 22);
  EXPECT_EQ(record.connection_type, "ssh");
  EXPECT_EQ(record.python_path, "auto");
  EXPECT_FALSE(record.shell_type);
  EXPECT_FALSE(record.resources);
  EXPECT_EQ(record.host_keys, (std::vector<std::string>{"ssh-ed25519 KEY-OF-host", "ssh-rsa KEY-OF-host"}));
  EXPECT_EQ(record.attributes, (boost::json::object{{"zone", "lab"}}));
  EXPECT_EQ(record.slot, 0);
  EXPECT_FALSE(launcher.provider->launches_nodes());
}

// S-reuse-fast, S-handler: only the vanished record triggers it.
TEST_F(StaticProviderTest, RegistersAgainAfterUse) {
  launcher.Configure(Config({Host("host", {"red"})}));
  NodeId first = ReadyIds().at(0);
  UseAndDelete(first);
  ASSERT_EQ(Ready().size(), 1u);
  EXPECT_NE(Ready()[0]->id, first);
  EXPECT_EQ(Ready()[0]->record.slot, 0);
}

// S-multiname
TEST_F(StaticProviderTest, TwoUsersOfAHostAreTwoNodes) {
  StaticNode other = Host("host", {"blue"});
  other.connection.username = "other";
  launcher.Configure(Config({Host("host", {"red"}), other}));
  ASSERT_EQ(Ready().size(), 2u);
  UseAndDelete(ReadyIds()[0]);
  EXPECT_EQ(Ready().size(), 2u);
  for (const store::StoredNode* node : Ready()) EXPECT_EQ(node->record.slot, 0);
}

// S-unresolvable
TEST_F(StaticProviderTest, OneBadHostDoesNotAffectTheOthers) {
  hosts.unknown.insert("nowhere");
  hosts.dead.insert("dead");
  launcher.Configure(Config({Host("nowhere", {"red"}), Host("dead", {"red"}), Host("good", {"red"})}));
  ASSERT_EQ(Ready().size(), 1u);
  EXPECT_EQ(Ready()[0]->record.hostname, "good");
  hosts.dead.clear();
  Resync();
  EXPECT_EQ(Ready().size(), 2u);
}

// S-node-increase, S-node-decrease, S-parallel-increase, S-parallel-decrease
TEST_F(StaticProviderTest, FollowsTheConfiguration) {
  launcher.Configure(Config({Host("one", {"red"})}));
  NodeId first = ReadyIds().at(0);
  launcher.Configure(Config({Host("one", {"red"}, 2), Host("two", {"red"})}));
  EXPECT_EQ(Ready().size(), 3u);
  launcher.Configure(Config({Host("one", {"red"})}));
  EXPECT_THAT(ReadyIds(), ElementsAre(first));
  EXPECT_EQ(launcher.nodes.InState(NodeState::kDeleting).size(), 2u);
}

// S-update-startup
TEST_F(StaticProviderTest, ARestartUpdatesTheRecordsOfTheFormerRun) {
  launcher.Configure(Config({Host("host", {"red"})}));
  NodeId id = ReadyIds().at(0);
  time.Run(launcher.provider->Stop());
  launcher.provider.reset();
  Launcher restarted(time, zk, hosts);
  restarted.Configure(Config({Host("host", {"red", "blue"})}));
  EXPECT_THAT(restarted.nodes.InState(NodeState::kReady), ElementsAre(id));
  EXPECT_THAT(restarted.nodes.Find(id)->record.type, ElementsAre(LabelName("red"), LabelName("blue")));
}

// S-update: the record keeps its id.
TEST_F(StaticProviderTest, UpdatesFreeRecordsInPlace) {
  launcher.Configure(Config({Host("host", {"red"})}));
  NodeId id = ReadyIds().at(0);
  StaticNode changed = Host("host", {"red", "blue"});
  changed.connection.connection_type = "winrm";
  changed.connection.python_path = "/usr/bin/python3";
  changed.connection.shell_type = "cmd";
  launcher.Configure(Config({changed}));
  ASSERT_THAT(ReadyIds(), ElementsAre(id));
  const Node& record = Ready()[0]->record;
  EXPECT_EQ(record.type.size(), 2u);
  EXPECT_EQ(record.connection_type, "winrm");
  EXPECT_EQ(record.python_path, "/usr/bin/python3");
  EXPECT_EQ(record.shell_type, "cmd");
  EXPECT_TRUE(record.host_keys.empty());
}

// drivers.md 7.4: also what the Python implementation leaves for the next registration.
TEST_F(StaticProviderTest, ChangedAttributesAndPoolReachFreeRecords) {
  launcher.Configure(Config({Host("host", {"red"})}));
  NodeId id = ReadyIds().at(0);
  auto changed = std::make_shared<StaticConfig>();
  changed->name = ProviderName("static/provider");
  auto pool = std::make_shared<StaticPool>();
  pool->name = PoolName("other");
  pool->node_attributes = boost::json::object{{"zone", "office"}};
  pool->nodes = {Host("host", {"red"})};
  changed->pools[pool->name] = pool;
  launcher.Configure(changed);
  ASSERT_THAT(ReadyIds(), ElementsAre(id));
  EXPECT_EQ(Ready()[0]->record.pool, PoolName("other"));
  EXPECT_EQ(Ready()[0]->record.attributes, pool->node_attributes);
}

TEST_F(StaticProviderTest, AnotherPortIsAnotherNode) {
  launcher.Configure(Config({Host("host", {"red"})}));
  NodeId id = ReadyIds().at(0);
  StaticNode moved = Host("host", {"red"});
  moved.connection.connection_port = 2022;
  launcher.Configure(Config({moved}));
  ASSERT_EQ(Ready().size(), 1u);
  EXPECT_NE(Ready()[0]->id, id);
  EXPECT_EQ(Ready()[0]->record.connection_port, 2022);
}

// S-assigned-untouched
TEST_F(StaticProviderTest, NodesInUseAreLeftAlone) {
  launcher.Configure(Config({Host("one", {"red"}), Host("two", {"red"}, 2)}));
  auto allocate = [](Node& record) {
    record.allocated_to = RequestId("100-0000000001");
    return store::Change::kWrite;
  };
  for (const NodeId& id : ReadyIds()) time.Run(launcher.store.nodes.UpdateUnlocked(id, allocate));
  time.Advance(seconds(1));
  launcher.Configure(Config({Host("two", {"blue"})}));
  Resync();
  EXPECT_EQ(Ready().size(), 3u);
}

// S-held
TEST_F(StaticProviderTest, HeldNodeKeepsItsSlot) {
  launcher.Configure(Config({Host("host", {"red"})}));
  SetState(ReadyIds().at(0), NodeState::kHold);
  Resync();
  EXPECT_TRUE(Ready().empty());
}

// S-missing
TEST_F(StaticProviderTest, ErasedRecordComesBack) {
  launcher.Configure(Config({Host("host", {"red"})}));
  auto erase = zk::DeleteRecursive(*launcher.client, "/nodepool/nodes/" + ReadyIds().at(0).str());
  time.Run(std::move(erase));
  Resync();
  EXPECT_EQ(Ready().size(), 1u);
}

// S-liveness, S-liveness-two
TEST_F(StaticProviderTest, DeadHostIsWithdrawnInsteadOfHandedOut) {
  launcher.Configure(Config({Host("host", {"red"}), Host("other", {"blue"})}));
  const store::StoredNode node = *Ready()[0];
  EXPECT_TRUE(CanBeReused(node));
  hosts.dead.insert(*node.record.hostname);
  EXPECT_FALSE(CanBeReused(node));
  time.Advance(seconds(1));
  EXPECT_EQ(launcher.nodes.Find(node.id)->record.state, NodeState::kDeleting);
  Remove(node.id);
  Resync();
  EXPECT_EQ(Ready().size(), 1u);
  hosts.dead.clear();
  Resync();
  EXPECT_EQ(Ready().size(), 2u);
}

// S-no-check
TEST_F(StaticProviderTest, WithoutKeyCheckingTheHostIsNotContacted) {
  StaticNode node = Host("host", {"red"});
  node.host_key_checking = false;
  node.host_keys = {"ssh-rsa CONFIGURED"};
  launcher.Configure(Config({node}));
  ASSERT_EQ(Ready().size(), 1u);
  EXPECT_EQ(Ready()[0]->record.host_keys, node.host_keys);
  EXPECT_TRUE(CanBeReused(*Ready()[0]));
  EXPECT_EQ(hosts.scans, 0);
}

// drivers.md 7.5
TEST_F(StaticProviderTest, HostWithOtherKeysIsNotRegistered) {
  StaticNode impostor = Host("impostor", {"red"});
  impostor.host_keys = {"ssh-ed25519 THE-REAL-ONE"};
  StaticNode genuine = Host("genuine", {"red"});
  genuine.host_keys = {"ssh-ed25519 KEY-OF-genuine"};
  log::Capture log;
  launcher.Configure(Config({impostor, genuine}));
  ASSERT_EQ(Ready().size(), 1u);
  EXPECT_EQ(Ready()[0]->record.hostname, "genuine");
  EXPECT_EQ(Ready()[0]->record.host_keys.size(), 2u) << "all scanned keys are stored";
  EXPECT_EQ(log.Count("host keys are not the configured ones"), 1);
}

TEST_F(StaticProviderTest, AddressOfEitherFamily) {
  launcher.Configure(Config({Host("six", {"red"})}));
  ASSERT_EQ(Ready().size(), 1u);
  EXPECT_EQ(Ready()[0]->record.public_ipv6, "2001:db8::1");
  EXPECT_FALSE(Ready()[0]->record.public_ipv4);
}

// D-85: each launcher registers only what is missing, no matter which one deletes a node.
TEST_F(StaticProviderTest, TwoLaunchersNeverFillASlotTwice) {
  zk.SetLatency(std::chrono::milliseconds(5));  // caches lag behind
  Launcher second(time, zk, hosts);
  auto config = Config({Host("host", {"red"}, 3)});
  driver::ProviderEnvironment environment{
      {time.loop(), second.random, second.blocking_pool}, second.records, [] {}};
  second.provider = std::make_unique<StaticProvider>(std::move(environment), config, hosts.Contact());
  time.Run(second.provider->Start());
  launcher.Configure(config);
  ASSERT_EQ(Ready().size(), 3u);
  for (int round = 0; round < 5; ++round) {
    for (const NodeId& id : ReadyIds()) {
      SetState(id, NodeState::kUsed);
      Remove(id);
    }
    time.Advance(seconds(10));
    ASSERT_EQ(Ready().size(), 3u);
    std::set<std::int64_t> slots;
    for (const store::StoredNode* node : Ready()) slots.insert(node->record.slot.value_or(-1));
    EXPECT_EQ(slots, (std::set<std::int64_t>{0, 1, 2}));
    EXPECT_EQ(time.Run(launcher.store.nodes.List()).size(), 3u);
  }
}

TEST_F(StaticProviderTest, HostsThatCannotBeUsedAreFaults) {
  hosts.dead = {"dead"};
  hosts.unknown = {"unheard-of"};
  auto config = Config({Host("host", {"red"}), Host("dead", {"red"}), Host("unheard-of", {"red"})});
  driver::ToolsEnvironment environment{{time.loop(), launcher.random, launcher.blocking_pool},
                                       launcher.store};
  auto tools = StaticDriver(hosts.Contact()).CreateOperatorTools(environment, config);
  EXPECT_THAT(time.Run(tools->FindFaults()),
              ElementsAre("host zuul@dead:22 cannot be used: timeout",
                          "host zuul@unheard-of:22 cannot be used: no such host"));
}

TEST_F(StaticProviderTest, HostsThatDoNotAnswerAreNoticedAndLoggedOnce) {
  log::Capture log;
  hosts.dead = {"a", "b"};
  launcher.Configure(Config({Host("host", {"red"}), Host("a", {"red"}), Host("b", {"blue"})}));
  EXPECT_THAT(launcher.notices, ElementsAre("2 of 3 hosts do not answer: a:22, b:22"));
  for (int i = 0; i < 20; ++i) Resync();
  EXPECT_EQ(log.Count("cannot be used"), 2) << "one for each host";
  EXPECT_EQ(launcher.reports, 2);
  hosts.dead = {"b"};
  Resync();
  EXPECT_THAT(launcher.notices, ElementsAre("1 of 3 hosts do not answer: b:22"));
  EXPECT_EQ(log.Count("answers again"), 1);
  hosts.dead.clear();
  Resync();
  EXPECT_TRUE(launcher.notices.empty());
}

TEST_F(StaticProviderTest, IdleProviderRegistersNothing) {
  launcher.Configure(Config({Host("host", {"red"})}));
  launcher.provider->Idle();
  UseAndDelete(ReadyIds().at(0));
  Resync();
  EXPECT_TRUE(Ready().empty());
}

}  // namespace

}  // namespace nodepool::drivers
