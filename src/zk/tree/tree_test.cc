#include "zk/tree/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include "base/ids.h"
#include "zk/tree/server_watches.h"

namespace nodepool::zk {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TreeTest : public ::testing::Test {
 protected:
  TreeTest() {
    tree.OpenSession(7);
    tree.OnChange([this](const DataTree::Change& change) { events.push_back(change.event); });
  }

  Result<Created> Create(std::string path, CreateMode mode = CreateMode::kPersistent, std::string data = "") {
    return tree.Create(CreateOp{std::move(path), std::move(data), mode}, 7, now);
  }
  Code CodeOfCreate(std::string path, CreateMode mode = CreateMode::kPersistent) {
    Result<Created> created = Create(std::move(path), mode);
    return created ? Code::kOk : created.error();
  }
  Code CodeOfDelete(std::string path, std::int32_t version = -1) {
    Result<> deleted = tree.Delete(DeleteOp{std::move(path), version}, 7);
    return deleted ? Code::kOk : deleted.error();
  }
  std::vector<std::pair<EventType, std::string>> TakeEvents() {
    std::vector<std::pair<EventType, std::string>> seen;
    for (const WatchEvent& event : std::exchange(events, {})) seen.emplace_back(event.type, event.path);
    return seen;
  }

  // All znodes with their data and stats.
  std::string Dump(const std::string& path = "/") {
    Result<NodeData> node = tree.Get(path);
    const Stat& stat = node->stat;
    std::string text = fmt::format("{} '{}' {} {} {} {} {} {}\n", path, node->data, stat.czxid, stat.mzxid,
                                   stat.pzxid, stat.version, stat.cversion, stat.ephemeral_owner);
    Result<Children> children = tree.GetChildren(path);
    for (const std::string& name : children->names) {
      text += Dump((path == "/" ? "" : path) + "/" + name);
    }
    return text;
  }

  DataTree tree;
  WallTime now = FromSeconds(1'700'000'000.25);
  std::vector<WatchEvent> events;
};

TEST_F(TreeTest, FillsTheStatOfANewZnode) {
  std::int64_t before = tree.last_zxid();
  Result<Created> created = Create("/a", CreateMode::kEphemeral, "four");
  ASSERT_TRUE(created);
  Stat expected;
  expected.czxid = expected.mzxid = expected.pzxid = before + 1;
  expected.ctime = expected.mtime = 1'700'000'000'250;
  expected.ephemeral_owner = 7;
  expected.data_length = 4;
  EXPECT_EQ(created->stat, expected);
  EXPECT_EQ(*tree.Exists("/a"), expected);
  EXPECT_EQ(tree.Get("/a")->data, "four");
}

TEST_F(TreeTest, SetCountsVersionsAndChangesOnlyTheDataStats) {
  Create("/a", CreateMode::kPersistent, "old");
  Stat old = *tree.Exists("/a");
  now += std::chrono::seconds(3);
  Result<Stat> set = tree.Set(SetOp{"/a", "newer", 0}, 7, now);
  ASSERT_TRUE(set);
  Stat expected = old;
  expected.mzxid = old.czxid + 1;
  expected.mtime = old.mtime + 3000;
  expected.version = 1;
  expected.data_length = 5;
  EXPECT_EQ(*set, expected);
  EXPECT_EQ(tree.Set(SetOp{"/a", "x", 0}, 7, now).error(), Code::kBadVersion);
  EXPECT_EQ(tree.Get("/a")->data, "newer");
}

// A server reports creations plus deletions as cversion, and a refused write uses
// up a transaction id too.
TEST_F(TreeTest, ParentStatsFollowTheChildren) {
  Create("/a");
  Create("/a/b");
  Create("/a/c");
  EXPECT_EQ(CodeOfCreate("/a/c"), Code::kNodeExists);
  EXPECT_EQ(CodeOfDelete("/a/b"), Code::kOk);
  Stat stat = *tree.Exists("/a");
  EXPECT_EQ(stat.cversion, 3);
  EXPECT_EQ(stat.num_children, 1);
  EXPECT_EQ(stat.version, 0);
  EXPECT_EQ(stat.pzxid, stat.czxid + 4);
  EXPECT_EQ(stat.mzxid, stat.czxid);
  EXPECT_EQ(tree.Exists("/")->cversion, 0) << "-1 on a fresh server, one creation since";
}

// coordination.md 3.2: the suffix counts every child ever created.
TEST_F(TreeTest, NumbersByChildrenEverCreated) {
  Create("/a");
  EXPECT_EQ(Create("/a/", CreateMode::kPersistentSequential)->path, "/a/0000000000");
  EXPECT_EQ(CodeOfCreate("/a/lock"), Code::kOk);
  EXPECT_EQ(Create("/a/200-", CreateMode::kPersistentSequential)->path, "/a/200-0000000002");
  EXPECT_EQ(CodeOfDelete("/a/200-0000000002"), Code::kOk);
  EXPECT_EQ(CodeOfCreate("/a/lock"), Code::kNodeExists);
  EXPECT_EQ(Create("/a/100-", CreateMode::kEphemeralSequential)->path, "/a/100-0000000003");
}

TEST_F(TreeTest, RefusesWhatAServerRefuses) {
  Create("/a");
  Create("/a/e", CreateMode::kEphemeral);
  EXPECT_EQ(CodeOfCreate("/x/y"), Code::kNoNode);
  EXPECT_EQ(CodeOfCreate("/a/e/below"), Code::kNoChildrenForEphemerals);
  EXPECT_EQ(CodeOfCreate("/a/"), Code::kBadArguments);
  EXPECT_EQ(CodeOfCreate("/a//b"), Code::kNoNode) << "its parent would be /a/";
  EXPECT_EQ(CodeOfCreate("/"), Code::kNodeExists);
  EXPECT_EQ(CodeOfCreate("/a/t", CreateMode::kPersistentTtl), Code::kUnimplemented);
  EXPECT_EQ(CodeOfDelete("/a"), Code::kNotEmpty);
  EXPECT_EQ(CodeOfDelete("/a/e", 3), Code::kBadVersion);
  EXPECT_EQ(CodeOfDelete("/zookeeper"), Code::kBadArguments);
  EXPECT_EQ(CodeOfDelete("/missing"), Code::kNoNode);
  EXPECT_EQ(tree.Get("/missing").error(), Code::kNoNode);
  EXPECT_EQ(tree.GetChildren("a").error(), Code::kBadArguments);
  EXPECT_EQ(tree.Create(CreateOp{"/late", "", CreateMode::kEphemeral}, 8, now).error(),
            Code::kSessionExpired);
}

TEST_F(TreeTest, ClosingASessionDeletesItsEphemeralsInOneTransaction) {
  tree.OpenSession(8);
  Create("/keep");
  Create("/keep/e1", CreateMode::kEphemeral);
  Create("/keep/e2", CreateMode::kEphemeralSequential);
  tree.Create(CreateOp{"/other", "", CreateMode::kEphemeral}, 8, now);
  EXPECT_EQ(tree.Ephemerals(7).size(), 2u);
  events.clear();
  tree.CloseSession(7);
  EXPECT_THAT(tree.GetChildren("/keep")->names, IsEmpty());
  EXPECT_TRUE(tree.Exists("/other"));
  EXPECT_FALSE(tree.IsOpen(7));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].zxid, events[1].zxid);
}

TEST_F(TreeTest, MultiAppliesAllInOneTransaction) {
  std::vector<Op> ops{CreateOp{"/a", "1"}, CreateOp{"/a/", "", CreateMode::kEphemeralSequential},
                      SetOp{"/a", "2", 0}, CheckOp{"/a", 1}, DeleteOp{"/a/0000000000"}};
  MultiResult result = tree.Multi(ops, 7, now);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.results[1].path, "/a/0000000000");
  EXPECT_EQ(result.results[2].stat.version, 1);
  EXPECT_EQ(result.results[0].stat.czxid, result.results[2].stat.mzxid);
  EXPECT_EQ(tree.Get("/a")->data, "2");
  EXPECT_THAT(
      TakeEvents(),
      ElementsAre(std::pair(EventType::kCreated, "/a"), std::pair(EventType::kCreated, "/a/0000000000"),
                  std::pair(EventType::kDataChanged, "/a"), std::pair(EventType::kDeleted, "/a/0000000000")));
}

TEST_F(TreeTest, RefusedMultiNamesThePartAndChangesNothing) {
  Create("/a", CreateMode::kPersistent, "data");
  Create("/a/e", CreateMode::kEphemeral);
  std::string before = Dump();
  events.clear();
  std::vector<Op> ops{SetOp{"/a", "x"}, CreateOp{"/a/", "", CreateMode::kEphemeralSequential},
                      DeleteOp{"/a/e"}, CreateOp{"/a/e/", ""}, CheckOp{"/missing"}};
  MultiResult result = tree.Multi(ops, 7, now);
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.failed, 3);
  EXPECT_EQ(result.code(), Code::kNoNode);
  EXPECT_EQ(result.results[0].code, Code::kOk);
  EXPECT_EQ(result.results[0].stat, Stat());
  EXPECT_EQ(result.results[4].code, Code::kRuntimeInconsistency);
  EXPECT_EQ(Dump(), before);
  EXPECT_EQ(tree.Ephemerals(7).size(), 1u);
  EXPECT_THAT(events, IsEmpty());
}

// Random transactions whose last part is always refused leave no trace.
TEST_F(TreeTest, RefusedMultiOfAnyShapeIsUndone) {
  SeededRandom random(4711);
  auto pick = [&](auto... options) {
    std::vector<std::string> all{options...};
    return all[random.Below(all.size())];
  };
  auto random_op = [&]() -> Op {
    std::string path = "/" + pick("a", "b") + pick("", "/c", "/d", "/c/e");
    switch (random.Below(4)) {
      case 0:
        return CreateOp{path, pick("x", "y"),
                        random.Below(3) ? CreateMode::kPersistent : CreateMode::kEphemeral};
      case 1:
        return CreateOp{path + "/n", "", CreateMode::kEphemeralSequential};
      case 2:
        return SetOp{path, pick("p", "q")};
      default:
        return DeleteOp{path};
    }
  };
  for (int round = 0; round < 400; ++round) {
    std::vector<Op> ops;
    for (int part = 0; part < 6; ++part) ops.push_back(random_op());
    ops.push_back(CheckOp{"/missing"});
    std::string before = Dump();
    std::size_t size_before = tree.size();
    std::set<std::string> own_before = tree.Ephemerals(7);
    ASSERT_FALSE(tree.Multi(ops, 7, now).ok());
    ASSERT_EQ(Dump(), before);
    ASSERT_EQ(tree.size(), size_before);
    ASSERT_EQ(tree.Ephemerals(7), own_before);
    (void)tree.Multi({random_op()}, 7, now);
  }
}

// What keeps clients from filling the memory through the tree.

constexpr std::size_t kLongestPath = 64 << 10;

class TreeBoundsTest : public ::testing::Test {
 protected:
  TreeBoundsTest() { tree.OpenSession(7); }

  Code Create(std::string path, CreateMode mode = CreateMode::kPersistent,
              std::shared_ptr<const Acl> acl = nullptr) {
    CreateOp op{std::move(path), "", mode};
    op.acl = std::move(acl);
    Result<Created> created = tree.Create(op, 7, FromSeconds(1));
    return created ? Code::kOk : created.error();
  }
  // How much a call adds to the bytes of the tree.
  template <class Call>
  std::size_t Added(Call call) {
    std::size_t before = tree.bytes();
    call();
    return tree.bytes() - before;
  }

  DataTree tree;
};

std::shared_ptr<const Acl> AclOfEntries(int count) {
  Acl acl;
  for (int i = 0; i < count; ++i) acl.push_back({permission::kAll, "digest", fmt::format("user{}:hash", i)});
  return std::make_shared<const Acl>(std::move(acl));
}

TEST_F(TreeBoundsTest, PathsHaveAtMost64KiB) {
  std::string longest = "/" + std::string(kLongestPath - 1, 'a');
  EXPECT_EQ(Create(longest), Code::kOk);
  EXPECT_EQ(Create(longest + "a"), Code::kBadArguments);
  EXPECT_EQ(Create(longest + "/b"), Code::kBadArguments);
  std::string before_number = "/" + std::string(kLongestPath - 11, 'b');
  EXPECT_EQ(Create(before_number, CreateMode::kPersistentSequential), Code::kOk);
  EXPECT_EQ(Create(before_number + "b", CreateMode::kPersistentSequential), Code::kBadArguments);
}

TEST_F(TreeBoundsTest, AnEphemeralZnodeCountsItsWholePath) {
  std::string parent = "/" + std::string(50'000, 'p');
  Create(parent);
  std::size_t persistent = Added([&] { Create(parent + "/a"); });
  std::size_t ephemeral = Added([&] { Create(parent + "/b", CreateMode::kEphemeral); });
  EXPECT_LT(persistent, 1000u);
  EXPECT_GE(ephemeral, persistent + 50'000);
}

TEST_F(TreeBoundsTest, AnAccessListCounts) {
  std::size_t without = Added([&] { Create("/a"); });
  std::size_t with = Added([&] { Create("/b", CreateMode::kPersistent, AclOfEntries(1000)); });
  EXPECT_GE(with, without + 1000 * sizeof(AclEntry));
  EXPECT_GE(Added([&] { (void)tree.SetAcl("/a", AclOfEntries(1000), -1); }), 1000 * sizeof(AclEntry));
}

TEST_F(TreeBoundsTest, WhatIsDeletedOrUndoneCountsNoMore) {
  std::size_t before = tree.bytes();
  Create("/a", CreateMode::kEphemeral, AclOfEntries(10));
  std::size_t with = tree.bytes();
  CreateOp second{"/b", std::string(500, 'x'), CreateMode::kEphemeral};
  second.acl = AclOfEntries(20);
  EXPECT_FALSE(tree.Multi({second, SetOp{"/b", "longer"}, DeleteOp{"/a"}, CheckOp{"/c"}}, 7, {}).ok());
  EXPECT_EQ(tree.bytes(), with);
  tree.CloseSession(7);
  EXPECT_EQ(tree.bytes(), before);
}

TEST_F(TreeBoundsTest, AWriteBeyondTheLimitIsRefused) {
  tree.LimitBytes(tree.bytes() + 100'000);
  EXPECT_EQ(Create("/a", CreateMode::kPersistent, AclOfEntries(5000)), Code::kQuotaExceeded);
  EXPECT_EQ(Create("/" + std::string(50'000, 'p')), Code::kOk);
  EXPECT_EQ(Create("/" + std::string(50'000, 'p') + "/a", CreateMode::kEphemeral), Code::kQuotaExceeded);
  EXPECT_EQ(Create("/small"), Code::kOk);
  Result<Stat> changed = tree.SetAcl("/small", AclOfEntries(5000), -1);
  EXPECT_EQ(changed.error(), Code::kQuotaExceeded);
}

TEST_F(TreeBoundsTest, DescendantsAreCounted) {
  for (const char* path : {"/a", "/a/b", "/a/b/c", "/a/d", "/e"}) Create(path);
  EXPECT_EQ(*tree.CountBelow("/a"), 3u);
  EXPECT_EQ(*tree.CountBelow("/a/b/c"), 0u);
  EXPECT_EQ(*tree.CountBelow("/"), tree.size() - 1);
  EXPECT_EQ(tree.CountBelow("/f").error(), Code::kNoNode);
  EXPECT_EQ(tree.CountBelow("f").error(), Code::kBadArguments);
}

// As a thread's start: frees the tree that it is given.
void* Free(void* tree) {
  delete static_cast<DataTree*>(tree);
  return nullptr;
}

TEST_F(TreeBoundsTest, ADeepTreeIsFreedWithALittleStack) {
  auto deep = std::make_unique<DataTree>();
  std::string path;
  for (int depth = 0; depth < 3000; ++depth) {
    path += "/a";
    ASSERT_TRUE(deep->Create(CreateOp{path, "", CreateMode::kPersistent}, 0, FromSeconds(1)));
  }
  pthread_attr_t little;
  pthread_attr_init(&little);
  pthread_attr_setstacksize(&little, 128 << 10);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &little, Free, deep.release()), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&little);
}

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
  EXPECT_TRUE(watches.Remove("/a", 1, false, false));
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
  EXPECT_FALSE(watches.Remove("/a", 1, true, false));
  EXPECT_TRUE(watches.Remove("/a", 2, true, false));
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
