#include "listing/wrap.h"

#include <gtest/gtest.h>

namespace nodepool::listing {
namespace {

TEST(WrapTest, LinesAreBrokenAtBlanks) {
  EXPECT_EQ(Wrap("- the cloud is full", 12, 2), "- the cloud\n  is full");
  EXPECT_EQ(Wrap("- the cloud is full", 80, 2), "- the cloud is full");
  EXPECT_EQ(Wrap("", 80, 2), "");
}

TEST(WrapTest, ALongWordIsCut) { EXPECT_EQ(Wrap("- see 4d1f0c2a-7b1e-4a0c", 12, 2), "- see\n  4d1f0c2a-…"); }

TEST(WrapTest, AnyWidthWillDo) { EXPECT_EQ(Wrap("ab c", 1, 2), "…\n  c"); }

}  // namespace
}  // namespace nodepool::listing
