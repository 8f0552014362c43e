#include "zk/tree/path.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace nodepool::zk {

namespace {

TEST(PathTest, AcceptsWhatAServerAccepts) {
  for (const char* path : {"/", "/a", "/nodepool/nodes/0000000000", "/a/..b", "/a/b.", "/a b", "/\xC3\xA4",
                           "/\xE2\x82\xAC", "/\xEF\xBB\xBF"}) {
    EXPECT_TRUE(IsValidPath(path)) << path;
  }
}

TEST(PathTest, RefusesWhatAServerRefuses) {
  for (const char* path : {"", "a", "/a/", "//", "/a//b", "/.", "/a/..", "/a/./b", "/a\n", "/\x7F",
                           "/\xC2\x85",          // control character U+0085
                           "/\xEE\x80\x80",      // private use U+E000
                           "/\xEF\xBF\xBD",      // U+FFFD
                           "/\xF0\x9F\x98\x80",  // beyond U+FFFF
                           "/\xFF"}) {
    EXPECT_FALSE(IsValidPath(path)) << path;
  }
  EXPECT_FALSE(IsValidPath(std::string_view("/a\0b", 4)));
}

TEST(WirePathsTest, Paths) {
  for (const char* good : {"/", "/a", "/a/b", "/.a", "/a..", "/...", "/a b", "/\u00fc"}) {
    EXPECT_NO_THROW(CheckPath(good)) << good;
  }
  for (const char* bad :
       {"", "a", "//", "/a/", "/a//b", "/.", "/..", "/a/../b", "/./b", "/a\n", "/\x7f", "/\xff"}) {
    EXPECT_THROW(CheckPath(bad), Error) << bad;
  }
  EXPECT_THROW(CheckPath(std::string_view("/a\0b", 4)), Error);
  EXPECT_NO_THROW(CheckPath("/a/", true)) << "a sequential create";
  EXPECT_THROW(CheckPath("/a//", true), Error);
}

TEST(WirePathsTest, PartsOfATransaction) {
  EXPECT_NO_THROW(CheckPaths({CreateOp{"/a/", "", CreateMode::kEphemeralSequential}, CheckOp{"/"}}));
  EXPECT_THROW(CheckPaths({CreateOp{"/a/", "", CreateMode::kPersistent}}), Error);
  EXPECT_THROW(CheckPaths({DeleteOp{"/a"}, SetOp{"b", ""}}), Error);
  EXPECT_THROW(CheckPaths({CreateOp{"/a", "", CreateMode::kPersistentTtl}}), Error);
}

TEST(WirePathsTest, Chroot) {
  EXPECT_EQ(NormalizedChroot(""), "");
  EXPECT_EQ(NormalizedChroot("/"), "");
  EXPECT_EQ(NormalizedChroot("/np/"), "/np");
  EXPECT_THROW(NormalizedChroot("np"), Error);
  EXPECT_EQ(WithoutChroot("/np/a", "/np"), "/a");
  EXPECT_EQ(WithoutChroot("/np", "/np"), "/");
  EXPECT_EQ(WithoutChroot("/npx/a", "/np"), std::nullopt);
  EXPECT_EQ(WithoutChroot("/a", "/np"), std::nullopt);
  EXPECT_EQ(WithoutChroot("/a", ""), "/a");
}

}  // namespace

}  // namespace nodepool::zk
