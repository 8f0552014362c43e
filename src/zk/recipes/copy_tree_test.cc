#include "zk/recipes/copy_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/testing/virtual_time.h"
#include "base/error.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::zk {
namespace {

using nodepool::testing::MemoryZk;
using nodepool::testing::VirtualTime;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t kNoLimit = std::size_t{1} << 30;

class CopyTreeTest : public ::testing::Test {
 protected:
  std::string Create(const std::string& path, std::string data = "",
                     CreateMode mode = CreateMode::kPersistent) {
    return time.Run(from->Create(path, std::move(data), mode)).value().path;
  }
  TreeContent Read(Client& client, std::string root = "/nodepool", std::size_t limit = kNoLimit) {
    return time.Run(ReadTree(client, std::move(root), limit));
  }
  void Copy(std::string root = "/nodepool") { time.Run(WriteTree(*to, Read(*from, std::move(root)))); }
  std::string DataAt(Client& client, const std::string& path) {
    return time.Run(client.Get(path)).value().data;
  }

  VirtualTime time;
  MemoryZk source{time.loop()}, target{time.loop()};
  std::unique_ptr<Client> from = source.Connect(), to = target.Connect();
};

TEST_F(CopyTreeTest, CopyHasDataAndGoesOnCounting) {
  Create("/nodepool", "root");
  Create("/nodepool/nodes");
  for (int i = 0; i < 2500; ++i) {
    std::string path = Create("/nodepool/nodes/", "node", CreateMode::kPersistentSequential);
    if (i % 1000 != 7) time.Run(from->Delete(path)).value();
  }
  Create("/nodepool/nodes/0000000007/lock");
  Create("/elsewhere");
  Copy();
  EXPECT_EQ(DataAt(*to, "/nodepool"), "root");
  EXPECT_EQ(DataAt(*to, "/nodepool/nodes/0000001007"), "node");
  EXPECT_THAT(time.Run(to->GetChildren("/nodepool/nodes/0000000007")).value().names, ElementsAre("lock"));
  EXPECT_FALSE(time.Run(to->Exists("/elsewhere")));
  Result<Created> next = time.Run(to->Create("/nodepool/nodes/", "", CreateMode::kPersistentSequential));
  EXPECT_EQ(next.value().path, "/nodepool/nodes/0000002500");
}

TEST_F(CopyTreeTest, WhatEndsWithASessionStaysBehind) {
  Create("/nodepool");
  Create("/nodepool/lock");
  Create("/nodepool/lock/mine", "", CreateMode::kEphemeralSequential);
  EXPECT_THAT(Read(*from).ephemerals, ElementsAre("/nodepool/lock/mine0000000000"));
  EXPECT_EQ(Read(*from).missing_numbers(), 1);
  Copy();
  EXPECT_EQ(FirstDifference(Read(*from), Read(*to)), "");
  EXPECT_EQ(Read(*to).znodes.size(), 2u);
}

TEST_F(CopyTreeTest, EverythingButTheServersOwn) {
  Create("/nodepool");
  Create("/zuul");
  Create("/zuul/large", std::string(600'000, 'x'));
  Create("/zuul/larger", std::string(700'000, 'x'));
  Copy("/");
  EXPECT_EQ(FirstDifference(Read(*from, "/"), Read(*to, "/")), "");
  EXPECT_EQ(Read(*to, "/").znodes.size(), 4u);
  time.Run(to->Create("/zuul/mine", "", CreateMode::kEphemeral)).value();
  time.Run(DeleteTree(*to, Read(*to, "/")));
  EXPECT_THAT(time.Run(to->GetChildren("/")).value().names, ElementsAre("zookeeper"));
}

TEST_F(CopyTreeTest, NothingIsNothing) {
  EXPECT_TRUE(Read(*from).znodes.empty());
  Copy();
  EXPECT_TRUE(Read(*to).znodes.empty());
}

TEST_F(CopyTreeTest, WritesOverNothing) {
  Create("/nodepool", "new");
  time.Run(to->Create("/nodepool", "old", CreateMode::kPersistent)).value();
  try {
    Copy();
    FAIL() << "was written";
  } catch (const Error& error) {
    EXPECT_EQ(error.verdict(), Verdict::kConflict);
    EXPECT_THAT(error.message(), HasSubstr("/nodepool"));
  }
  EXPECT_EQ(DataAt(*to, "/nodepool"), "old");
}

TEST_F(CopyTreeTest, MoreThanTheLimitIsNotRead) {
  Create("/nodepool", std::string(1000, 'x'));
  EXPECT_THROW(Read(*from, "/nodepool", 1000), Error);
  EXPECT_EQ(Read(*from, "/nodepool", 1009).bytes, 1009u);
}

TEST_F(CopyTreeTest, DifferencesAreNamed) {
  TreeContent one, other;
  one.znodes = {{"/a", {"x", 3, 0}}};
  other = one;
  EXPECT_EQ(FirstDifference(one, other), "");
  other.znodes["/a"].created = 4;
  EXPECT_EQ(FirstDifference(one, other), "");
  EXPECT_THAT(FirstDifference(other, one), HasSubstr("/a: its numbers begin earlier"));
  other.znodes["/a"].data = "y";
  EXPECT_THAT(FirstDifference(one, other), HasSubstr("/a: has other data"));
  other = one;
  other.znodes["/b"];
  EXPECT_THAT(FirstDifference(one, other), HasSubstr("/b: is in the copy alone"));
  EXPECT_THAT(FirstDifference(other, one), HasSubstr("/b: is missing"));
}

}  // namespace
}  // namespace nodepool::zk
