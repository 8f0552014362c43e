#include "zk/tree/path.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace nodepool::zk
