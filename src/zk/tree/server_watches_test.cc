#include "zk/tree/server_watches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nodepool::zk {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "connection type path" of each delivery.
std::vector<std::string> Texts(const std::vector<ServerWatches::Delivery>& deliveries) {
  std::vector<std::string> texts;
  for (const auto& [connection_id, event] : deliveries) {
    texts.push_back(fmt::format("{} {} {}", connection_id, static_cast<int>(event.type), event.path));
  }
  return texts;
}

std::vector<std::string> Trigger(ServerWatches& watches, EventType type, std::string path) {
  return Texts(watches.Trigger(WatchEvent{type, std::move(path), 9}));
}

TEST(ServerWatchesTest, DataWatchFiresOnce) {
  ServerWatches watches;
  watches.AddData("/a", 1);
  watches.AddData("/a", 1);
  watches.AddData("/a", 2);
  EXPECT_THAT(Trigger(watches, EventType::kDataChanged, "/a"), ElementsAre("1 3 /a", "2 3 /a"));
  EXPECT_THAT(Trigger(watches, EventType::kDataChanged, "/a"), IsEmpty());
  EXPECT_EQ(watches.size(), 0u);
}

TEST(ServerWatchesTest, WatchesOfAnEndedConnectionFireNoMoreAndAreFreedInPieces) {
  ServerWatches watches;
  for (int i = 0; i < 10; ++i) watches.AddData(fmt::format("/a{}", i), 1);
  watches.AddStaying("/a5", WatchMode::kPersistent, 1);
  watches.AddStaying("/", WatchMode::kPersistentRecursive, 1);
  watches.AddData("/a5", 2);
  EXPECT_EQ(watches.BytesOf(1),
            10 * ServerWatches::BytesOf("/a0") + ServerWatches::BytesOf("/a5") + ServerWatches::BytesOf("/"));
  watches.RemoveAll(1);
  EXPECT_EQ(watches.size(), 1u);
  EXPECT_EQ(watches.BytesOf(1), 0u);
  EXPECT_FALSE(watches.Has("/a1", 1, true, true));
  EXPECT_THAT(Trigger(watches, EventType::kDataChanged, "/a5"), ElementsAre("2 3 /a5"));
  EXPECT_THAT(Trigger(watches, EventType::kDataChanged, "/a6"), IsEmpty());
  EXPECT_TRUE(watches.Free(7));
  EXPECT_THAT(Trigger(watches, EventType::kDataChanged, "/a7"), IsEmpty());
  EXPECT_FALSE(watches.Free(7));
  EXPECT_FALSE(watches.Free(7));
}

TEST(ServerWatchesTest, ChildWatchFiresForChildrenAndForItsDeletion) {
  ServerWatches watches;
  watches.AddChildren("/a", 1);
  EXPECT_THAT(Trigger(watches, EventType::kDataChanged, "/a"), IsEmpty());
  EXPECT_THAT(Trigger(watches, EventType::kCreated, "/a/b"), ElementsAre("1 4 /a"));
  watches.AddChildren("/a", 1);
  EXPECT_THAT(Trigger(watches, EventType::kDeleted, "/a"), ElementsAre("1 2 /a"));
}

TEST(ServerWatchesTest, PersistentWatchStays) {
  ServerWatches watches;
  watches.AddStaying("/a", WatchMode::kPersistent, 1);
  EXPECT_THAT(Trigger(watches, EventType::kCreated, "/a"), ElementsAre("1 1 /a"));
  EXPECT_THAT(Trigger(watches, EventType::kCreated, "/a/b"), ElementsAre("1 4 /a"));
  EXPECT_THAT(Trigger(watches, EventType::kDataChanged, "/a/b"), IsEmpty());
  EXPECT_TRUE(watches.RemoveStaying("/a", WatchMode::kPersistent, 1));
  EXPECT_THAT(Trigger(watches, EventType::kDeleted, "/a"), IsEmpty());
}

// coordination.md 2.9
TEST(ServerWatchesTest, RecursiveWatchFiresForRootAndBelowWithoutChildEvents) {
  ServerWatches watches;
  watches.AddStaying("/a", WatchMode::kPersistentRecursive, 1);
  EXPECT_THAT(Trigger(watches, EventType::kCreated, "/a"), ElementsAre("1 1 /a"));
  EXPECT_THAT(Trigger(watches, EventType::kCreated, "/a/b/c"), ElementsAre("1 1 /a/b/c"));
  EXPECT_THAT(Trigger(watches, EventType::kDataChanged, "/a/b"), ElementsAre("1 3 /a/b"));
  EXPECT_THAT(Trigger(watches, EventType::kDeleted, "/a/b"), ElementsAre("1 2 /a/b"));
  EXPECT_THAT(Trigger(watches, EventType::kCreated, "/ab"), IsEmpty());
  watches.AddStaying("/", WatchMode::kPersistentRecursive, 2);
  EXPECT_THAT(Trigger(watches, EventType::kCreated, "/ab"), ElementsAre("2 1 /ab"));
}

TEST(ServerWatchesTest, OneEventPerPathServesAllWatchesOfAConnection) {
  ServerWatches watches;
  watches.AddStaying("/a", WatchMode::kPersistentRecursive, 1);
  watches.AddData("/a/b", 1);
  watches.AddChildren("/a/b", 1);
  watches.AddChildren("/a", 1);
  EXPECT_THAT(Trigger(watches, EventType::kDeleted, "/a/b"), ElementsAre("1 2 /a/b", "1 4 /a"));
}

TEST(ServerWatchesTest, RemoveAllRemovesAllWatchesOfAConnection) {
  ServerWatches watches;
  for (ServerWatches::ConnectionId connection_id : {1, 2}) {
    watches.AddData("/a", connection_id);
    watches.AddChildren("/b", connection_id);
    watches.AddStaying("/c", WatchMode::kPersistent, connection_id);
    watches.AddStaying("/d", WatchMode::kPersistentRecursive, connection_id);
  }
  watches.RemoveAll(1);
  EXPECT_EQ(watches.size(), 4u);
  EXPECT_FALSE(watches.RemoveData("/a", 1));
  EXPECT_TRUE(watches.RemoveData("/a", 2));
}

TEST(ServerWatchesTest, RestoreReportsOnlyWhatWasMissed) {
  DataTree tree;
  for (const char* path : {"/same", "/changed", "/gone", "/quiet", "/busy"}) {
    (void)tree.Create(CreateOp{path}, 0, WallTime());
  }
  std::int64_t seen = tree.last_zxid();
  (void)tree.Set(SetOp{"/changed", "x"}, 0, WallTime());
  (void)tree.Delete(DeleteOp{"/gone"}, 0);
  (void)tree.Create(CreateOp{"/busy/child"}, 0, WallTime());
  (void)tree.Create(CreateOp{"/born"}, 0, WallTime());

  ServerWatches watches;
  protocol::WatchPaths paths;
  paths.data = {"/same", "/changed", "/gone"};
  paths.exist = {"/born", "/unborn"};
  paths.child = {"/quiet", "/busy", "/gone"};
  paths.recursive = {"/busy"};
  std::vector<std::string> missed;
  for (const WatchEvent& event : watches.Restore(tree, 1, seen, paths)) {
    missed.push_back(fmt::format("{} {}", static_cast<int>(event.type), event.path));
  }
  EXPECT_THAT(missed, ElementsAre("3 /changed", "2 /gone", "1 /born", "4 /busy", "2 /gone"));
  EXPECT_EQ(watches.size(), 4u) << "/same, /unborn, /quiet and the recursive one";
}

}  // namespace
}  // namespace nodepool::zk
