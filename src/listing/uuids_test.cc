#include "listing/uuids.h"

#include <gtest/gtest.h>

namespace nodepool::listing {
namespace {

TEST(UuidsTest, EightDigitsStay) {
  EXPECT_EQ(ShortenUuids("4d1f0c2a-7b1e-4a0c-9d3f-0123456789ab"), "4d1f0c2a…");
  EXPECT_EQ(ShortenUuids("7f2d078703b34af08fae429893d49341"), "7f2d0787…");
}

TEST(UuidsTest, WhatIsAroundThemStays) {
  EXPECT_EQ(ShortenUuids("vm-PoolWorker.fake-cloud-main-986e7f260efc4d27b8b39e1923dda19c"),
            "vm-PoolWorker.fake-cloud-main-986e7f26…");
  EXPECT_EQ(ShortenUuids("a-986e7f260efc4d27b8b39e1923dda19c,b-986e7f260efc4d27b8b39e1923dda19d"),
            "a-986e7f26…,b-986e7f26…");
}

TEST(UuidsTest, OtherTextsStay) {
  for (const char* text : {"", "i-17", "0000000042", "7f2d078703b34af08fae429893d4934", "日本",
                           "7f2d078703b34af08fae429893d49341f", "x7f2d078703b34af08fae429893d49341"}) {
    EXPECT_EQ(ShortenUuids(text), text);
  }
}

}  // namespace
}  // namespace nodepool::listing
