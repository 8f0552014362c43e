// What the cache's own client writes is not read.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/task.h"
#include "async/task_group.h"
#include "base/testing/test_environment.h"
#include "zk/recipes/tree_cache_for_test.h"

namespace nodepool::zk {
namespace {

using nodepool::testing::FaultyZk;
using nodepool::testing::MemoryZk;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TreeCacheOwnWritesTest : public TreeCacheTest {
 protected:
  void SetUp() override {
    zk.SetLatency(milliseconds(10));
    Create("/r");
    Create("/r/a", "1");
    Start();
    view.TakeLog();
    faulty.ClearCalls();
  }

  std::vector<std::string> Reads() const {
    std::vector<std::string> paths;
    for (const FaultyZk::Call& call : faulty.calls()) {
      if (!call.is_write) paths.push_back(call.path);
    }
    return paths;
  }
};

TEST_F(TreeCacheOwnWritesTest, AreNotRead) {
  (void)time.Run(faulty.Set("/r/a", "2", -1));
  EXPECT_THAT(view.TakeLog(), ElementsAre("+/r/a=2"));
  (void)time.Run(faulty.Create("/r/b", "3", CreateMode::kPersistent));
  (void)time.Run(faulty.Create("/r/c-", "4", CreateMode::kPersistentSequential));
  (void)time.Run(faulty.Multi({CheckOp{"/r/b"}, SetOp{"/r/b", "5"}, SetOp{"/r/a", "6"}}));
  EXPECT_THAT(view.TakeLog(), ElementsAre("+/r/b=3", "+/r/c-0000000002=4", "+/r/b=5", "+/r/a=6"));
  Settle();
  EXPECT_THAT(Reads(), IsEmpty());
  EXPECT_EQ(view.nodes, Truth());
}

// coordination.md 7.3
TEST_F(TreeCacheOwnWritesTest, ThatAreNotAnnouncedShowThatTheWatchIsLost) {
  zk.LoseWatches(*client);
  Set("/r/a", "of another");
  Settle();
  ASSERT_NE(view.nodes, Truth()) << "nothing tells it";
  (void)time.Run(faulty.Create("/r/b", "ours", CreateMode::kPersistent));
  Settle();
  EXPECT_EQ(view.nodes, Truth());
  Set("/r/a", "and later");
  Settle();
  EXPECT_EQ(view.nodes, Truth()) << "it is watched again";
}

// The listener is notified first, so that who has written finds it in the cache.
TEST_F(TreeCacheOwnWritesTest, AreInTheCacheWhenTheWriterGetsTheAnswer) {
  auto write = [](Client& client, View& view) -> Task<std::string> {
    Result<Stat> unused = co_await client.Set("/r/a", "2", -1);
    (void)unused;
    co_return view.nodes["/r/a"];
  };
  EXPECT_EQ(time.Run(write(faulty, view)), "2");
}

TEST_F(TreeCacheOwnWritesTest, ThatAreRefusedAreRead) {
  TaskGroup tasks(time.loop(), log::Logger("test"));
  auto set = [](Client& client) -> Task<> {
    Result<Stat> refused = co_await client.Set("/r/a", "mine", 0);
    EXPECT_FALSE(refused.has_value());
  };
  tasks.Spawn("write", set(faulty));
  Set("/r/a", "of another");  // before ours arrives
  Settle();
  EXPECT_THAT(view.TakeLog(), ElementsAre("+/r/a=of another"));
  EXPECT_THAT(Reads(), ElementsAre("/r/a"));
}

TEST_F(TreeCacheOwnWritesTest, ShowWhatAnotherWroteBefore) {
  TaskGroup tasks(time.loop(), log::Logger("test"));
  auto set = [](Client& client) -> Task<> {
    Result<Stat> written = co_await client.Set("/r/a", "mine", -1);
    EXPECT_TRUE(written.has_value());
  };
  tasks.Spawn("write", set(faulty));
  Set("/r/a", "of another");
  Settle();
  EXPECT_THAT(view.TakeLog(), ElementsAre("+/r/a=mine"));
  EXPECT_THAT(Reads(), IsEmpty());
}

TEST_F(TreeCacheOwnWritesTest, AnothersChangeAfterwardsIsRead) {
  TaskGroup tasks(time.loop(), log::Logger("test"));
  auto set = [](Client& client) -> Task<> {
    Result<Stat> written = co_await client.Set("/r/a", "mine", -1);
    EXPECT_TRUE(written.has_value());
  };
  tasks.Spawn("write", set(faulty));
  time.Advance(milliseconds(6));  // it is done, and its answer on the way
  Set("/r/a", "of another");
  Settle();
  EXPECT_THAT(view.TakeLog(), ElementsAre("+/r/a=mine", "+/r/a=of another"));
  EXPECT_THAT(Reads(), ElementsAre("/r/a"));
}

TEST_F(TreeCacheOwnWritesTest, ASequentialZnodeOfAnotherIsRead) {
  TaskGroup tasks(time.loop(), log::Logger("test"));
  auto create = [](Client& client) -> Task<> {
    Result<Created> created = co_await client.Create("/r/s-", "mine", CreateMode::kPersistentSequential);
    EXPECT_TRUE(created.has_value());
  };
  tasks.Spawn("write", create(faulty));
  Create("/r/s-", "of another", CreateMode::kPersistentSequential);
  Settle();
  EXPECT_THAT(view.TakeLog(), ElementsAre("+/r/s-0000000001=of another", "+/r/s-0000000002=mine"));
  EXPECT_THAT(Reads(), ElementsAre("/r/s-0000000001"));
}

TEST_F(TreeCacheOwnWritesTest, WithoutAWriterThatWaitsAreRead) {
  {
    TaskGroup tasks(time.loop(), log::Logger("test"));
    auto set = [](Client& client) -> Task<> {
      Result<Stat> unused = co_await client.Set("/r/a", "2", -1);
      (void)unused;
    };
    tasks.Spawn("write", set(faulty));
    time.Advance(milliseconds(6));
    time.Run(tasks.Stop());
  }
  Settle();
  EXPECT_EQ(view.nodes, Truth());
}

// Writes of the cache's client and of others, lost connections and faults in any order.
class TreeCacheOwnChaosTest : public TreeCacheTest, public ::testing::WithParamInterface<std::uint64_t> {
 protected:
  std::string RandomPath() { return fmt::format("/r/{}", random_.Below(4)); }
  std::string RandomData() { return std::to_string(random_.Below(1000)); }

  Task<> WriteOne() {
    std::string path = RandomPath();
    switch (random_.Below(5)) {
      case 0: {
        Result<Created> unused = co_await faulty.Create(path, RandomData(), CreateMode::kPersistent);
        co_return;
      }
      case 1: {
        Result<Created> unused =
            co_await faulty.Create("/r/s-", RandomData(), CreateMode::kPersistentSequential);
        co_return;
      }
      case 2: {
        [[maybe_unused]] Result<> unused = co_await faulty.Delete(path, -1);
        co_return;
      }
      case 3: {
        [[maybe_unused]] Result<Stat> unused = co_await faulty.Set(path, RandomData(), -1);
        co_return;
      }
      default: {
        std::vector<Op> ops;
        ops.emplace_back(SetOp{path, RandomData()});
        ops.emplace_back(SetOp{RandomPath(), RandomData()});
        MultiResult unused = co_await faulty.Multi(std::move(ops));
      }
    }
  }
  Task<> Own() { co_await Attempt(WriteOne()); }

  void Another() {
    switch (random_.Below(4)) {
      case 0:
        return Create(RandomPath(), RandomData());
      case 1:
        return Create("/r/s-", RandomData(), CreateMode::kPersistentSequential);
      case 2:
        return Delete(RandomPath());
      default:
        return Set(RandomPath(), RandomData());
    }
  }

  SeededRandom random_{GetParam()};
};

TEST_P(TreeCacheOwnChaosTest, Converges) {
  zk.SetLatency(milliseconds(random_.Below(20)));
  faulty.FailRandomly(random_.Below(2) * 0.02, random_);
  Create("/r");
  cache.Start();
  TaskGroup writers(time.loop(), log::Logger("test"));
  for (int step = 0; step < 600; ++step) {
    for (std::uint64_t n = random_.Below(4); n > 0; --n) writers.Spawn("write", Own());
    for (std::uint64_t n = random_.Below(3); n > 0; --n) Another();
    time.Advance(std::chrono::microseconds(random_.Below(8000)));
    switch (random_.Below(60)) {
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
        if (random_.Below(5) == 0) zk.Reconnect(*client);
    }
  }
  faulty.FailNever();
  zk.Reconnect(*client);
  Settle();
  EXPECT_TRUE(cache.synced());
  EXPECT_EQ(view.nodes, Truth());
  time.Run(writers.Stop());
}

INSTANTIATE_TEST_SUITE_P(Seeds, TreeCacheOwnChaosTest,
                         ::testing::Range<std::uint64_t>(1, testing::Often(61, 16)));

}  // namespace
}  // namespace nodepool::zk
