#include "zk/tree/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"

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

}  // namespace
}  // namespace nodepool::zk
