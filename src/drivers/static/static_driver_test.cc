#include "drivers/static/static_driver.h"

#include <gtest/gtest.h>

#include "drivers/static/static_config.h"
#include "drivers/static/static_host.h"
#include "net/servers_for_test.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::drivers {

namespace {

using Ids = std::vector<NodeId>;

store::StoredNode Record(const char* id, std::optional<std::int64_t> slot,
                         NodeState state = NodeState::kReady) {
  store::StoredNode node;
  node.id = NodeId(id);
  node.record.slot = slot;
  node.record.state = state;
  return node;
}

// drivers.md 7.2
TEST(SlotTableTest, RecordsAreInTheirSlots) {
  auto a = Record("a", 1), b = Record("b", 0, NodeState::kInUse);
  SlotTable table = MakeSlotTable(3, {&a, &b});
  EXPECT_EQ(table.slots, (Ids{NodeId("b"), NodeId("a"), NodeId()}));
  EXPECT_EQ(table.EmptySlots(), std::vector<int>{2});
  EXPECT_TRUE(table.excess.empty());
}

TEST(SlotTableTest, RecordsWithoutUsableSlotFillTheGaps) {
  auto none = Record("none", std::nullopt), twice = Record("twice", 0), big = Record("big", 7);
  auto first = Record("first", 0);
  SlotTable table = MakeSlotTable(2, {&first, &twice, &none, &big});
  EXPECT_EQ(table.slots, (Ids{NodeId("first"), NodeId("twice")}));
  EXPECT_EQ(table.excess, (Ids{NodeId("none"), NodeId("big")}));
}

TEST(SlotTableTest, RecordsThatVanishOccupyNothing) {
  auto building = Record("x", 0, NodeState::kBuilding), deleting = Record("y", 0, NodeState::kDeleting);
  auto held = Record("z", 1, NodeState::kHold);
  SlotTable table = MakeSlotTable(2, {&building, &deleting, &held});
  EXPECT_EQ(table.EmptySlots(), std::vector<int>{0});
}

TEST(SlotTableTest, NegativeSlotCountMeansNone) {
  auto a = Record("a", 0);
  EXPECT_EQ(MakeSlotTable(-1, {&a}).excess.size(), 1u);
}

TEST(SlotTableTest, UserIsPartOfTheIdentity) {
  Node a, b;
  a.hostname = b.hostname = "host";
  a.username = "one";
  b.username = "two";
  EXPECT_NE(IdentityOf(a), IdentityOf(b));
  EXPECT_EQ(IdentityOf(a).ToString(), "one@host:22");
}

Task<> RegisterAndStop(Loop& loop, store::NodeCache& nodes, store::ImageCache& images,
                       driver::Provider& provider, Node& registered) {
  nodes.Start();
  images.Start();
  co_await provider.Start();
  SteadyTime deadline = loop.SteadyNow() + std::chrono::seconds(20);
  while (nodes.all().empty() && loop.SteadyNow() < deadline)
    co_await loop.SleepFor(std::chrono::milliseconds(20));
  if (!nodes.all().empty()) registered = nodes.all().begin()->second.record;
  co_await provider.Stop();
  co_await nodes.Stop();
  co_await images.Stop();
}

// The keys of a real server reach the record.
TEST(StaticDriverTest, RegistersARealSshServer) {
  net::SshServerForTest server({"ed25519", "rsa-2048"});
  server.Start();
  Loop loop;
  testing::MemoryZk zk(loop);
  auto client = zk.Connect();
  SeededRandom random(1);
  BlockingPool blocking_pool(2);
  store::Store store(loop, *client, random);
  store::NodeCache nodes(loop, *client);
  store::ImageCache images(loop, *client);
  driver::RecordsEnvironment records{store, nodes, images};

  StaticNode host;
  host.name = "127.0.0.1";
  host.labels = {LabelName("red")};
  host.connection.connection_port = server.port();
  host.host_keys = {server.public_key("ed25519")};
  host.timeout = std::chrono::seconds(15);
  auto pool = std::make_shared<StaticPool>();
  pool->name = PoolName("main");
  pool->nodes = {host};
  auto config = std::make_shared<StaticConfig>();
  config->name = ProviderName("lab");
  config->pools[pool->name] = pool;

  StaticDriver driver;
  driver::ProviderEnvironment environment{{loop, random, blocking_pool}, records, [] {}};
  auto provider = driver.CreateProvider(std::move(environment), config);
  Node record;
  RunToEnd(loop, RegisterAndStop(loop, nodes, images, *provider, record));
  EXPECT_EQ(record.state, NodeState::kReady);
  EXPECT_EQ(record.public_ipv4, "127.0.0.1");
  EXPECT_EQ(record.host_keys,
            (std::vector<std::string>{server.public_key("ed25519"), server.public_key("rsa-2048")}));
}

}  // namespace

}  // namespace nodepool::drivers
