// What keeps clients from filling the memory through the tree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include "zk/tree/tree.h"

namespace nodepool::zk {
namespace {

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

}  // namespace
}  // namespace nodepool::zk
