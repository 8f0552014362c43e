#include "store/cache/caches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/store_for_test.h"

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

}  // namespace
}  // namespace nodepool::store
