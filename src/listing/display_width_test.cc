#include "listing/display_width.h"

#include <gtest/gtest.h>

namespace nodepool::listing {
namespace {

TEST(DisplayWidthTest, WideCharactersCountTwoAndCombiningOnesNone) {
  EXPECT_EQ(DisplayWidth("abc"), 3u);
  EXPECT_EQ(DisplayWidth("日本"), 4u);
  EXPECT_EQ(DisplayWidth("e\u0301"), 1u);
  EXPECT_EQ(DisplayWidth("é"), 1u);
}

TEST(DisplayWidthTest, MalformedUtf8TakesOneColumnAByte) {
  EXPECT_EQ(DisplayWidth("\xff\xfe"), 2u);
  EXPECT_EQ(DisplayWidth("\xe6\x97"), 2u);  // cut off in the middle
  EXPECT_EQ(DisplayWidth(""), 0u);
}

TEST(DisplayWidthTest, WhatIsTooWideKeepsItsBeginning) {
  EXPECT_EQ(CutToWidth("ubuntu-jammy", 12), "ubuntu-jammy");
  EXPECT_EQ(CutToWidth("ubuntu-jammy", 9), "ubuntu-j…");
  EXPECT_EQ(CutToWidth("ubuntu-jammy", 1), "…");
  EXPECT_EQ(CutToWidth("日本語", 4), "日…");
  EXPECT_EQ(CutToWidth("日本語", 6), "日本語");
  EXPECT_EQ(CutToWidth("e\u0301e\u0301e\u0301", 2), "e\u0301…");
  EXPECT_EQ(CutToWidth("", 1), "");
}

}  // namespace
}  // namespace nodepool::listing
