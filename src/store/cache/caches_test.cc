#include "store/cache/caches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/task_group.h"
#include "store/cache/cached_records.h"
#include "store/store_for_test.h"
#include "store/unlocked_records.h"

namespace nodepool::store {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CachesTest : public ::testing::Test {
 protected:
  void TearDown() override { world_.Run(caches_.Stop()); }
  void StartAll() {
    for (Cache* cache : caches_.all()) cache->Start();
  }
  void Start(Cache& cache) {
    cache.Start();
    world_.Run(cache.WaitSynced());
  }
  void Put(const std::string& path, const std::string& data) {
    world_.Put(path, data);
    Settle();
  }
  void Settle() { world_.time.Advance(std::chrono::milliseconds(1)); }

  World world_;
  Caches caches_{world_.time.loop(), world_.faulty};
  log::Capture log_;
};

TEST_F(CachesTest, OnlyThoseThatWereStartedAreFilledAndWaitedFor) {
  world_.Put("/nodepool/nodes/0000000001", ToJson(InitNode()));
  world_.Put("/nodepool/requests/200-0000000001", ToJson(Requested("small")));
  EXPECT_FALSE(caches_.synced());
  world_.Run(caches_.WaitSynced());  // for none
  caches_.nodes.Start();
  EXPECT_FALSE(caches_.synced());
  world_.Run(caches_.WaitSynced());
  EXPECT_TRUE(caches_.synced());
  EXPECT_EQ(caches_.nodes.all().size(), 1u);
  EXPECT_THAT(caches_.requests.all(), IsEmpty());
}

TEST_F(CachesTest, AreIncompleteWhileZooKeeperIsAway) {
  StartAll();
  world_.Run(caches_.WaitSynced());
  caches_.RequireSynced();
  world_.memory.Disconnect(*world_.client);
  EXPECT_FALSE(caches_.synced());
  EXPECT_EQ(VerdictThrown([&] { caches_.RequireSynced(); }), Verdict::kRetry);
  world_.memory.Reconnect(*world_.client);
  world_.Run(caches_.WaitSynced());
  for (const Cache* cache : caches_.all()) EXPECT_TRUE(cache->synced()) << cache->kind();
}

TEST_F(CachesTest, ALoopIsWokenOnceTheyAreComplete) {
  StartAll();
  world_.Run(caches_.WaitSynced());
  world_.memory.Disconnect(*world_.client);
  int ready = 0;
  WakeLoop loop(
      world_.time.loop(), "records", {},
      [&] {
        if (caches_.SyncedOrWake(loop)) ++ready;
        return SteadyTime::max();
      },
      log::Logger("nodepool"));
  TaskGroup tasks(world_.time.loop(), log::Logger("nodepool"));
  tasks.Spawn("decide", loop.Run());
  Settle();
  EXPECT_EQ(ready, 0);
  world_.memory.Reconnect(*world_.client);
  world_.Run(caches_.WaitSynced());
  Settle();
  EXPECT_EQ(ready, 1);
  world_.Run(tasks.Stop());
}

// D-08: one line per version, which names the record, whatever its kind.
TEST_F(CachesTest, MalformedRecordsOfAllKindsAreNamed) {
  StartAll();
  world_.Run(caches_.WaitSynced());
  Put("/nodepool/nodes/0000000001", "{");
  Put("/nodepool/requests/200-0000000001", "{");
  Put("/nodepool/images/deb12/builds/b", "{");
  Put("/nodepool/images/deb12/builds/b/providers/east/images/0000000001", "{");
  Put("/nodepool/jobs/0000000001", "{");
  Put("/nodepool/jobs/holds/0000000001", "{");
  Put("/nodepool/paused-providers/east", "{");
  Put("/nodepool/components/pool/p1", "{");
  Put("/nodepool/breakers/east:main:small", "{");
  Put("/nodepool/runners/runs/0123abcd", "{");
  Put("/nodepool/runners/sets/octo/small", "{");
  for (const char* record :
       {"node 0000000001", "request 200-0000000001", "build deb12-b", "upload deb12-b in east: 0000000001",
        "rule about jobs 0000000001", "hold note 0000000001", "pause east", "component pool/p1",
        "breaker label small in pool main of provider east", "run of a runner 0123abcd",
        "set of runners octo/small"}) {
    EXPECT_EQ(log_.Count(std::string("is ignored until it is fixed or deleted: ") + record), 1) << record;
  }
  std::vector<std::string> counted;
  for (const Cache* cache : caches_.all())
    counted.push_back(fmt::format("{} {}", cache->kind(), cache->malformed_count()));
  EXPECT_THAT(counted, ElementsAre("component 1", "node 1", "request 1", "request lock 0", "image 2", "job 2",
                                   "lease 0", "pause 1", "breaker 1", "runner 2"));
}

TEST_F(CachesTest, AMalformedRecordThatStaysMalformedIsNoChange) {
  Start(caches_.jobs);
  int changes = 0;
  Subscription rules = caches_.jobs.OnRule([&](const JobId&, const auto*, const auto*) { ++changes; });
  Put("/nodepool/jobs/0000000001", "{");
  Put("/nodepool/jobs/0000000001", "{{");
  EXPECT_EQ(changes, 0);
  Put("/nodepool/jobs/0000000001", R"({"name": "a"})");
  Put("/nodepool/jobs/0000000001", "{");
  EXPECT_EQ(changes, 2);
}

TEST_F(CachesTest, AnyChangeIsReportedOnce) {
  Start(caches_.images);
  int changes = 0;
  Subscription watch = caches_.images.OnAnyChange([&] { ++changes; });
  Put("/nodepool/images/deb12", "");
  EXPECT_EQ(changes, 1);
  Put("/nodepool/images/deb12/pause", "");
  world_.Erase("/nodepool/images/deb12/pause");
  Settle();
  EXPECT_EQ(changes, 3);
}

TEST_F(CachesTest, ANodeOfTwoLeasesIsFoundAsLongAsOneIsThere) {
  Start(caches_.leases);
  Lease lease;
  lease.state = LeaseState::kHeld;
  lease.client = "ci";
  lease.labels = {LabelName("small")};
  lease.nodes = {NodeId("0000000001")};
  const std::string first(32, 'a'), second(32, 'b');
  Put("/nodepool/leases/" + first, ToJson(lease));
  Put("/nodepool/leases/" + second, ToJson(lease));
  world_.Erase("/nodepool/leases/" + first);
  Settle();
  ASSERT_NE(caches_.leases.Holding(lease.nodes[0]), nullptr);
  EXPECT_EQ(caches_.leases.Holding(lease.nodes[0])->id, LeaseId(second));
}

Component Pool() {
  Component pool;
  pool.kind = ComponentKind::kPool;
  pool.hostname = "np01";
  pool.state = ComponentState::kRunning;
  pool.id = LauncherId("np01-PoolWorker.p-main-1");
  pool.provider_name = ProviderName("p");
  pool.supported_labels.emplace_back("small");
  return pool;
}

class ComponentTest : public ::testing::Test {
 protected:
  ComponentTest() : registry(w.time.loop(), w.faulty), entry(w.time.loop(), w.faulty, Pool()) {
    w.Run(EnsureComponentDirectories(w.time.loop(), w.faulty));
    registry.Start();
    w.Run(registry.WaitSynced());
  }
  ~ComponentTest() override {
    w.Run(entry.Unregister());
    w.Run(registry.Stop());
  }
  void Settle() { w.time.Advance(std::chrono::seconds(1)); }

  World w;
  ComponentRegistry registry;
  ComponentEntry entry;
};

// coordination.17.1, 17.2
TEST_F(ComponentTest, AnEntryIsAnEphemeralSequentialZnode) {
  EXPECT_EQ(entry.path(), "");
  w.Run(entry.Register());
  EXPECT_EQ(entry.path(), "pool/np010000000000");
  zk::Result<zk::NodeData> node = w.memory.tree().Get("/nodepool/components/pool/np010000000000");
  ASSERT_TRUE(node);
  EXPECT_NE(node->stat.ephemeral_owner, 0);
  EXPECT_EQ(node->data, ToJson(Pool()));
  Settle();
  EXPECT_TRUE(registry.Contains(entry.path()));
  ASSERT_EQ(registry.Pools().size(), 1u);
  EXPECT_EQ(*registry.Pools()[0], Pool());
  EXPECT_EQ(w.Children("/nodepool/components").size(), 3u);
}

// coordination.17.3
TEST_F(ComponentTest, AChangeRewritesTheSameZnodeOnce) {
  w.Run(entry.Register());
  Component changed = Pool();
  entry.Update(changed);
  changed.supported_labels.emplace_back("large");
  w.faulty.ClearCalls();
  entry.Update(changed);
  entry.Update(changed);
  Settle();
  EXPECT_EQ(w.faulty.CountWrites(), 1u);
  EXPECT_EQ(registry.all().at("pool/np010000000000").supported_labels.size(), 2u);
}

TEST_F(ComponentTest, AChangeTakenBackIsWrittenWhenTheFirstOneLostItsAnswer) {
  w.Run(entry.Register());
  bool is_lost = false;
  w.faulty.FailWhen([&](const testing::FaultyZk::Call& call) {
    if (!call.is_write || std::exchange(is_lost, true)) return testing::FaultyZk::Fault::kNone;
    return testing::FaultyZk::Fault::kAfter;
  });
  Component changed = Pool();
  changed.is_paused = true;
  entry.Update(changed);
  w.time.RunUntil([&] { return is_lost; });
  w.faulty.FailNever();
  entry.Update(Pool());
  Settle();
  EXPECT_FALSE(registry.all().at("pool/np010000000000").is_paused);
}

TEST_F(ComponentTest, AChangeIsReportedWithWhatWasBefore) {
  std::vector<std::string> changes;
  Subscription watch =
      registry.OnChange([&](const std::string& path, const Component* before, const Component* after) {
        auto count = [](const Component* c) {
          return c == nullptr ? -1 : static_cast<int>(c->supported_labels.size());
        };
        changes.push_back(fmt::format("{}: {} -> {}", path, count(before), count(after)));
      });
  w.Run(entry.Register());
  Component changed = Pool();
  changed.supported_labels.emplace_back("large");
  entry.Update(changed);
  Settle();
  w.Put("/nodepool/components/pool/np010000000000", "{");
  Settle();
  w.Run(entry.Unregister());
  Settle();
  EXPECT_EQ(changes, (std::vector<std::string>{"pool/np010000000000: -1 -> 1", "pool/np010000000000: 1 -> 2",
                                               "pool/np010000000000: 2 -> -1"}));
}

// coordination.17.4
TEST_F(ComponentTest, UnregisteringDeletesTheEntry) {
  w.Run(entry.Register());
  w.Run(entry.Unregister());
  Settle();
  EXPECT_TRUE(registry.all().empty());
  EXPECT_EQ(entry.path(), "");
}

TEST_F(ComponentTest, UnregisteringIsRepeatedThroughFaults) {
  for (auto fault : {testing::FaultyZk::Fault::kBefore, testing::FaultyZk::Fault::kAfter}) {
    World world;
    ComponentEntry announced(world.time.loop(), world.faulty, Pool());
    world.Run(announced.Register());
    world.faulty.FailNth(0, fault);
    world.Run(announced.Unregister());
    EXPECT_TRUE(world.Children("/nodepool/components/pool").empty());
  }
}

TEST_F(ComponentTest, UnregisteringEndsARegistrationThatWaits) {
  World world;
  ComponentEntry announced(world.time.loop(), world.faulty, Pool());
  TaskGroup group(world.time.loop(), log::Logger("test"));
  world.memory.Disconnect(*world.client);
  group.Spawn("register", announced.Register());
  world.time.Advance(std::chrono::seconds(1));
  ASSERT_EQ(group.size(), 1u);
  world.Run(announced.Unregister());
  world.time.Advance(std::chrono::seconds(1));
  EXPECT_EQ(group.size(), 0u);
  world.Run(group.Stop());
  world.memory.Reconnect(*world.client);
}

TEST_F(ComponentTest, UnregisteringFindsWhatAnInterruptedCreationMade) {
  World world;
  ComponentEntry announced(world.time.loop(), world.faulty, Pool());
  TaskGroup group(world.time.loop(), log::Logger("test"));
  world.faulty.FailWhen([&](const testing::FaultyZk::Call& call) {
    bool has_parents = world.memory.tree().Exists("/nodepool/components/pool").has_value();
    return call.name == "Create" && has_parents ? testing::FaultyZk::Fault::kAfter
                                                : testing::FaultyZk::Fault::kNone;
  });
  group.Spawn("register", announced.Register());
  ASSERT_TRUE(world.time.RunUntil([&] { return world.Children("/nodepool/components/pool").size() == 1; }));
  world.faulty.FailNever();
  world.Run(announced.Unregister());
  world.Run(group.Stop());
  EXPECT_TRUE(world.Children("/nodepool/components/pool").empty());
}

// coordination.17.5
TEST_F(ComponentTest, ANewSessionGetsANewEntry) {
  w.Run(entry.Register());
  w.memory.ExpireSession(*w.client);
  ASSERT_TRUE(w.time.RunUntil([&] { return entry.path() == "pool/np010000000001"; }));
  ASSERT_TRUE(w.time.RunUntil([&] { return registry.Contains(entry.path()); }));
  EXPECT_EQ(w.Children("/nodepool/components/pool"), std::vector<std::string>{"np010000000001"});
}

TEST_F(ComponentTest, ADeletedEntryIsCreatedAgain) {
  w.Run(entry.Register());
  w.Erase("/nodepool/components/pool/np010000000000");
  Component changed = Pool();
  changed.is_paused = true;
  entry.Update(changed);
  ASSERT_TRUE(w.time.RunUntil([&] { return entry.path() == "pool/np010000000001"; }));
}

TEST_F(ComponentTest, LostAnswersLeaveOneEntry) {
  for (auto fault : {testing::FaultyZk::Fault::kBefore, testing::FaultyZk::Fault::kAfter}) {
    for (std::size_t n = 0; n < 8; ++n) {
      World world;
      ComponentEntry announced(world.time.loop(), world.faulty, Pool());
      world.faulty.FailNth(n, fault);
      world.Run(announced.Register());
      Component changed = Pool();
      changed.is_paused = true;
      announced.Update(changed);
      world.time.Advance(std::chrono::seconds(10));
      EXPECT_EQ(world.Children("/nodepool/components/pool").size(), 1u) << n;
      EXPECT_EQ(world.Data("/nodepool/components/" + announced.path()), ToJson(changed)) << n;
      world.faulty.FailNever();
      world.Run(announced.Unregister());
      EXPECT_TRUE(world.Children("/nodepool/components/pool").empty()) << n;
    }
  }
}

// coordination.17.5
TEST_F(ComponentTest, ANewSessionGetsOneEntryWhateverFails) {
  for (auto fault : {testing::FaultyZk::Fault::kBefore, testing::FaultyZk::Fault::kAfter}) {
    for (std::size_t n = 0; n < 4; ++n) {
      World world;
      ComponentEntry announced(world.time.loop(), world.faulty, Pool());
      world.Run(announced.Register());
      world.faulty.FailNth(n, fault);
      world.memory.ExpireSession(*world.client);
      world.time.Advance(std::chrono::seconds(30));
      std::vector<std::string> expected = {std::string(zk::BaseName(announced.path()))};
      EXPECT_EQ(world.Children("/nodepool/components/pool"), expected) << n;
      world.faulty.FailNever();
      world.Run(announced.Unregister());
    }
  }
}

TEST_F(ComponentTest, TheModelVersionIsTheMinimumOfAll) {
  w.Put("/nodepool/components/builder/nb010000000000", R"({"model_api": -1})");
  w.Put("/nodepool/components/builder/nb010000000001", "garbage");
  w.Put("/nodepool/components/executor/ze010000000001", "{}");
  Settle();
  EXPECT_EQ(registry.all().size(), 1u);
  EXPECT_EQ(registry.model_api(), -1);
  EXPECT_TRUE(registry.Pools().empty());
}

}  // namespace

}  // namespace nodepool::store
