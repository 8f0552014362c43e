#include "zk/server/free_space.h"

#include <gtest/gtest.h>

namespace nodepool::zk::server {
namespace {

TEST(FreeSpaceTest, WhatIsLeftIsNamedWhereItIsLittle) {
  EXPECT_EQ(ShortageText("/state", 123'456), "; 0.1 MB are free in /state");
  EXPECT_EQ(ShortageText("/state", 1'000'000'000), "");
  EXPECT_EQ(ShortageNear("/no/such/folder/zookeeper.sqlite"), "") << "it is not known";
}

}  // namespace
}  // namespace nodepool::zk::server
