#include "zk/recipes/tree_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/task_group.h"
#include "async/testing/run_ready.h"
#include "async/testing/virtual_time.h"
#include "base/error.h"
#include "base/testing/test_environment.h"
#include "zk/recipes/tree_cache_for_test.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::zk {

namespace {

using nodepool::testing::FaultyZk;
using nodepool::testing::MemoryZk;
using nodepool::testing::VirtualTime;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(TreeCacheTest, WhatAListenerHadNoMemoryForIsReportedAgain) {
  for (const char* path : {"/r", "/r/a", "/r/a/lock", "/r/b"}) Create(path, "1");
  view.failures = 2;
  Start();
  EXPECT_EQ(view.nodes, Truth());
  view.failures = 1;
  Set("/r/b", "2");
  Settle();
  EXPECT_EQ(view.nodes, Truth());
}

TEST_F(TreeCacheTest, ReportsWhatExistsThenFollows) {
  Create("/r");
  Create("/r/a", "1");
  Create("/r/a/lock");
  Create("/r/b", "2");
  Create("/rest", "not below the root");
  Start();
  EXPECT_TRUE(cache.synced());
  EXPECT_EQ(view.times_synced, 1);
  EXPECT_EQ(view.nodes, Truth());
  EXPECT_EQ(view.nodes.size(), 3u);
  view.TakeLog();

  Set("/r/a", "3");
  Create("/r/c", "4");
  Delete("/r/b");
  Create("/r/a/lock/x", "ignored");
  Set("/r", "root");
  testing::RunReady(time.loop());
  EXPECT_THAT(view.TakeLog(), ElementsAre("+/r/a=3", "+/r/c=4", "-/r/b", "+/r/a/lock/x"));
  EXPECT_EQ(view.times_synced, 1);
}

TEST_F(TreeCacheTest, OfWhatDoesNotMatterNothingIsReportedButWhatIsBelowIt) {
  Create("/r");
  Create("/r/n-aside", "1");
  Create("/r/n-aside/a", "2");
  Start();
  EXPECT_THAT(view.TakeLog(), ElementsAre("+/r/n-aside/a=2"));
  Set("/r/n-aside", "3");
  Create("/r/n-aside/b", "4");
  Create("/r/other-aside");
  Create("/r/other-aside/c", "5");
  Delete("/r/n-aside/a");
  testing::RunReady(time.loop());
  EXPECT_THAT(view.TakeLog(), ElementsAre("+/r/n-aside/b=4", "+/r/other-aside/c=5", "-/r/n-aside/a"));
  zk.Disconnect(*client);
  Delete("/r/n-aside/b");
  Delete("/r/n-aside");
  zk.Reconnect(*client);
  time.Run(cache.WaitSynced());
  EXPECT_THAT(view.TakeLog(), ElementsAre("-/r/n-aside/b"));
}

TEST_F(TreeCacheTest, AMissingRootIsEmptyAndFollowedWhenItIsCreated) {
  Start();
  EXPECT_THAT(view.nodes, IsEmpty());
  Create("/r");
  Create("/r/a", "1");
  testing::RunReady(time.loop());
  EXPECT_EQ(view.nodes, Truth());
  Delete("/r/a");
  Delete("/r");
  Create("/r");
  Create("/r/b", "2");
  testing::RunReady(time.loop());
  EXPECT_EQ(view.nodes, Truth());
}

// One read per wanted change, none for the others; leaves are not listed.
TEST_F(TreeCacheTest, ReadsNoMoreThanNeeded) {
  Create("/r");
  for (int i = 0; i < 10; ++i) Create(fmt::format("/r/{}", i), "x");
  Start();
  std::size_t walk = faulty.calls().size();
  EXPECT_EQ(walk, 12u) << "a watch, one listing, ten reads";
  faulty.ClearCalls();
  Set("/r/3", "y");
  Create("/r/3/lock");
  Create("/r/3/lock/x__lock__0000000000");
  Delete("/r/7");
  testing::RunReady(time.loop());
  ASSERT_EQ(faulty.calls().size(), 1u);
  EXPECT_EQ(faulty.calls()[0].name + faulty.calls()[0].path, "Get/r/3");
  faulty.ClearCalls();
  for (int i = 0; i < 100; ++i) Set("/r/3", std::to_string(i));
  testing::RunReady(time.loop());
  EXPECT_LE(faulty.calls().size(), 100u);
  EXPECT_EQ(view.nodes, Truth());
}

TEST_F(TreeCacheTest, ReadsArePipelinedAndBounded) {
  zk.SetLatency(milliseconds(10));
  Create("/r");
  for (int i = 0; i < 1000; ++i) Create(fmt::format("/r/{:04}", i), "x");
  SteadyTime begin = time.loop().SteadyNow();
  Start();
  EXPECT_LT(time.loop().SteadyNow() - begin, milliseconds(100)) << "1000 reads in 4 batches of 256";
  EXPECT_GT(time.loop().SteadyNow() - begin, milliseconds(50));
  EXPECT_EQ(view.nodes.size(), 1000u);
  EXPECT_TRUE(std::ranges::is_sorted(view.log)) << "reported in order";
}

TEST_F(TreeCacheTest, ADeletionOvertakesTheReadBeforeIt) {
  Create("/r");
  Start();
  zk.SetLatency(milliseconds(10));
  Create("/r/a", "1");
  time.Advance(milliseconds(8));  // the read is under way
  Delete("/r/a");
  time.Advance(seconds(1));
  EXPECT_THAT(view.TakeLog(), IsEmpty());
  Create("/r/a", "2");
  time.Advance(milliseconds(8));
  Delete("/r/a");
  Create("/r/a", "3");
  time.Advance(seconds(1));
  EXPECT_THAT(view.TakeLog(), ElementsAre("+/r/a=3"));
}

TEST_F(TreeCacheTest, ChangesOfDifferentPathsKeepTheirOrder) {
  Create("/r");
  Create("/r/a", "1");
  Start();
  view.TakeLog();
  zk.SetLatency(milliseconds(10));
  Create("/r/b", "2");
  Create("/r/lock");
  Delete("/r/a");
  time.Advance(seconds(1));
  EXPECT_THAT(view.TakeLog(), ElementsAre("+/r/b=2", "+/r/lock", "-/r/a"));
}

TEST_F(TreeCacheTest, CatchingUpShowsEarlierWrites) {
  Create("/r");
  Create("/r/0", "old");
  Start();
  zk.SetLatency(milliseconds(10));
  for (int i = 0; i < 600; ++i) Create(fmt::format("/r/{:04}", i), "x");
  Set("/r/0", "new");
  EXPECT_NE(view.nodes, Truth());
  time.Run(cache.CatchUp());
  EXPECT_EQ(view.nodes, Truth());

  Set("/r/0", "newer");
  zk.Disconnect(*client);
  bool is_done = false;
  auto catch_up = [](TreeCache& cache, bool& is_done) -> Task<> {
    co_await cache.CatchUp();
    is_done = true;
  };
  TaskGroup group(time.loop(), log::Logger("test"));
  group.Spawn("catch up", catch_up(cache, is_done));
  Settle();
  EXPECT_FALSE(is_done) << "the change has not arrived yet";
  zk.Reconnect(*client);
  Settle();
  EXPECT_TRUE(is_done);
  EXPECT_EQ(view.nodes, Truth());
}

// The handlers that run while `count` znodes are made and as many tasks, each of which has
// something else to wait for, catch up.
std::size_t HandlersToCatchUp(int count) {
  VirtualTime time;
  MemoryZk zk(time.loop(), {.latency = milliseconds(10)});
  auto client = zk.Connect();
  View view;
  TreeCache cache(time.loop(), *client, "/r", view);
  (void)zk.tree().Create(CreateOp{"/r"}, 0, time.loop().Now());
  cache.Start();
  time.Run(cache.WaitSynced());
  TaskGroup waiting(time.loop(), log::Logger("test"));
  std::size_t handlers = 0;
  auto step = [&](SteadyTime when) {
    time.clock().AdvanceTo(when);
    handlers += testing::RunReady(time.loop());
  };
  for (int i = 0; i < count; ++i) {
    (void)zk.tree().Create(CreateOp{fmt::format("/r/{:06}", i), "x"}, 0, time.loop().Now());
    waiting.Spawn("catch up", cache.CatchUp());
    step(time.loop().SteadyNow() + std::chrono::microseconds(5));
  }
  while (waiting.size() > 0) step(time.clock().next_timer());
  EXPECT_EQ(view.nodes.size(), static_cast<std::size_t>(count));
  time.Run(cache.Stop());
  return handlers;
}

// An event wakes only the waiters whose changes have arrived: it costs no more when many wait.
TEST(TreeCacheCostTest, CatchingUpCostsNoMoreAmongMany) {
  double few = static_cast<double>(HandlersToCatchUp(50)) / 50;
  double many = static_cast<double>(HandlersToCatchUp(1500)) / 1500;
  EXPECT_LE(many, 1.1 * few);
}

TEST_F(TreeCacheTest, AReconnectionReportsOnlyTheDifferences) {
  Create("/r");
  for (const char* path : {"/r/same", "/r/changed", "/r/gone", "/r/lock"}) Create(path, "1");
  Create("/r/lock/x");
  Start();
  view.TakeLog();
  zk.Disconnect(*client);
  EXPECT_FALSE(cache.synced());
  Set("/r/changed", "2");
  Delete("/r/gone");
  Delete("/r/lock/x");
  Delete("/r/lock");
  Create("/r/new", "3");
  zk.Reconnect(*client);
  time.Run(cache.WaitSynced());
  EXPECT_THAT(view.TakeLog(),
              ElementsAre("+/r/changed=2", "+/r/new=3", "-/r/lock/x", "-/r/lock", "-/r/gone"));
  EXPECT_EQ(view.times_synced, 2);
}

TEST_F(TreeCacheTest, FollowsInANewSession) {
  Create("/r");
  Create("/r/a", "1");
  Start();
  zk.ExpireSession(*client);
  Set("/r/a", "2");
  Settle();
  EXPECT_TRUE(cache.synced());
  Set("/r/a", "3");
  testing::RunReady(time.loop());
  EXPECT_EQ(view.nodes, Truth());
  EXPECT_EQ(view.times_synced, 2);
}

// coordination.md 7.3
TEST_F(TreeCacheTest, ARestoredServersOlderRecordsReplaceNewerOnes) {
  Create("/r");
  Create("/r/a", "old");
  Create("/r/b", "same number");
  std::optional<DataTree::Snapshot> older = zk.tree().Export("/r/a"), other = zk.tree().Export("/r/b");
  ASSERT_TRUE(older && other);
  std::int64_t backed_up_at = zk.tree().last_zxid();
  Set("/r/a", "new");
  Start();
  ASSERT_EQ(view.nodes["/r/a"], "new");
  other->data = "another record with that number";
  zk.ExpireSession(*client);
  zk.tree().Restore(*older);
  zk.tree().Restore(*other);
  zk.tree().ContinueAfter(backed_up_at);
  Settle();
  EXPECT_EQ(view.nodes, Truth());
}

TEST_F(TreeCacheTest, ARestoredServerThatKnowsTheSessionIsFollowed) {
  Create("/r");
  Create("/r/a", "old");
  std::optional<DataTree::Snapshot> older = zk.tree().Export("/r/a");
  ASSERT_TRUE(older);
  Set("/r/a", "new");
  Start();
  zk.Disconnect(*client);
  zk.tree().Restore(*older);
  view.last_mzxid.clear();
  zk.Reconnect(*client);
  Settle();
  EXPECT_EQ(view.nodes, Truth());
}

// Each operation of the start fails once, before or after its effect.
struct WalkFault {
  FaultyZk::Fault fault;
  Verdict verdict;
  std::size_t operation;
  Duration latency;
};

constexpr std::size_t kOperationsOfTheWalk = 6;

void ExpectRepeated(WalkFault at) {
  VirtualTime time;
  MemoryZk zk(time.loop(), {.latency = at.latency});
  for (const char* path : {"/r", "/r/a", "/r/a/lock", "/r/b"}) {
    (void)zk.tree().Create(CreateOp{path}, 0, time.loop().Now());
  }
  auto client = zk.Connect();
  FaultyZk faulty(*client);
  faulty.SetError(Error(at.verdict, "injected fault"));
  faulty.FailNth(at.operation, at.fault);
  View view;
  TreeCache cache(time.loop(), faulty, "/r", view);
  cache.Start();
  time.Run(cache.WaitSynced());
  ASSERT_GT(faulty.calls().size(), kOperationsOfTheWalk) << "the walk, and what was repeated";
  EXPECT_EQ(faulty.calls()[at.operation].fault, at.fault);
  EXPECT_EQ(view.nodes.size(), 3u);
  EXPECT_EQ(view.times_synced, 1);
  time.Run(cache.Stop());
}

TEST(TreeCacheFaultTest, AnyFailureOfTheWalkIsRepeated) {
  for (auto fault : {FaultyZk::Fault::kBefore, FaultyZk::Fault::kAfter}) {
    for (Verdict verdict : {Verdict::kRetry, Verdict::kFail}) {
      // Answers come before or after the next attempt begins.
      for (Duration latency : {seconds(0), seconds(2)}) {
        for (std::size_t n = 0; n < kOperationsOfTheWalk; ++n) ExpectRepeated({fault, verdict, n, latency});
      }
    }
  }
}

// More changes than concurrent reads are allowed: what waits is read once, and what was deleted
// meanwhile not at all.
TEST_F(TreeCacheTest, WaitingReadsAreSharedAndOvertaken) {
  Create("/r");
  Start();
  zk.SetLatency(milliseconds(10));
  for (int i = 0; i < 400; ++i) Create(fmt::format("/r/{:03}", i), "1");
  time.Advance(milliseconds(6));
  faulty.ClearCalls();
  Set("/r/399", "2");
  Delete("/r/398");
  Create("/r/398", "2");
  Delete("/r/397");
  time.Advance(seconds(1));
  EXPECT_EQ(view.nodes, Truth());
  auto log = view.TakeLog();
  EXPECT_EQ(std::ranges::count_if(log, [](const std::string& line) { return line.starts_with("-"); }), 0);
  auto reads = [this](const std::string& path) {
    return std::ranges::count_if(faulty.calls(), [&](const auto& call) { return call.path == path; });
  };
  EXPECT_EQ(reads("/r/399"), 1);
  EXPECT_EQ(reads("/r/398"), 1);
  EXPECT_EQ(reads("/r/397"), 0);
}

// Something happens at one instant of the walk, also at the very moment at which answers are
// produced or arrive.
class TreeCacheMomentTest : public TreeCacheTest, public ::testing::WithParamInterface<int> {
 protected:
  void Happen(int what) {
    switch (what) {
      case 0:
        Delete("/r/a/lock/x");
        Delete("/r/a/lock");
        return;
      case 1:
        Delete("/r/a/lock/x");
        return Create("/r/a/lock/x");
      case 2:
        return Create("/r/a/lock/y");
      case 3:
        return Set("/r/z/c", "2");
      case 4:
        return Delete("/r/001");
      case 5:
        Delete("/r/001");
        return Create("/r/001", "2");
      case 6:
        zk.Disconnect(*client, MemoryZk::UnderWay::kDone);
        break;
      default:
        zk.ExpireSession(*client);
    }
    Delete("/r/002");
    zk.Reconnect(*client);
  }
};

TEST_P(TreeCacheMomentTest, Converges) {
  zk.SetLatency(milliseconds(10));
  for (const char* path : {"/r", "/r/a", "/r/a/lock", "/r/a/lock/x", "/r/z", "/r/z/c", "/r/z/c/d"})
    Create(path);
  for (int i = 0; i < 300; ++i) Create(fmt::format("/r/{:03}", i), "1");
  cache.Start();
  time.Advance(milliseconds(5 * (GetParam() / 8)));
  Happen(GetParam() % 8);
  Settle();
  EXPECT_EQ(view.nodes, Truth());
}

INSTANTIATE_TEST_SUITE_P(Moments, TreeCacheMomentTest, ::testing::Range(0, 8 * 16));

// Whatever happens to the tree, the connection and single reads: when no more changes come, the
// listener's copy is correct.
class TreeCacheChaosTest : public TreeCacheTest, public ::testing::WithParamInterface<std::uint64_t> {};

TEST_P(TreeCacheChaosTest, Converges) {
  SeededRandom random(GetParam());
  auto random_path = [&] {
    std::string path = "/r";
    for (std::uint64_t depth = random.Below(4); depth > 0; --depth) {
      std::uint64_t name = random.Below(8);
      path += name == 7 ? "/lock" : name == 6 ? "/n-aside" : "/" + std::to_string(name);
    }
    return path;
  };
  auto change = [&] {
    std::string path = random_path();
    std::uint64_t kind = random.Below(10);
    if (kind < 5) return Create(path, std::to_string(random.Below(1000)));
    if (kind < 7) return Set(path, std::to_string(random.Below(1000)));
    Delete(path);
  };
  zk.SetLatency(milliseconds(random.Below(20)));
  faulty.FailRandomly(random.Below(2) * 0.01, random);
  for (int i = 0; i < 30; ++i) change();
  cache.Start();
  for (int step = 0; step < 600; ++step) {
    for (std::uint64_t n = random.Below(4); n > 0; --n) change();
    time.Advance(std::chrono::microseconds(random.Below(8000)));
    switch (random.Below(60)) {
      case 0:
        zk.Disconnect(*client, MemoryZk::UnderWay::kDone);
        break;
      case 1:
        zk.Disconnect(*client);
        break;
      case 2:
        zk.ExpireSession(*client);
        break;
      default:
        if (random.Below(5) == 0) zk.Reconnect(*client);
    }
  }
  faulty.FailNever();
  zk.Reconnect(*client);
  Settle();
  EXPECT_TRUE(cache.synced());
  EXPECT_EQ(view.nodes, Truth());
  // And it continues to follow changes.
  for (int i = 0; i < 20; ++i) change();
  Settle();
  EXPECT_EQ(view.nodes, Truth());
}

INSTANTIATE_TEST_SUITE_P(Seeds, TreeCacheChaosTest,
                         ::testing::Range<std::uint64_t>(1, testing::Often(101, 26)));

}  // namespace

}  // namespace nodepool::zk
