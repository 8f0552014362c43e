#include "driver/cloud/name_rule.h"

#include <gtest/gtest.h>

#include <string>

namespace nodepool::driver::cloud {
namespace {

TEST(NameRuleTest, NamesOfHosts) {
  for (const char* good : {"a", "np0000000001", "a-1"}) EXPECT_TRUE(kHostNameRule.Permits(good)) << good;
  for (const char* bad : {"", "1a", "a-", "-a", "A", "a_b", "a.b", "a b"})
    EXPECT_FALSE(kHostNameRule.Permits(bad)) << bad;
  EXPECT_TRUE(kHostNameRule.Permits(std::string(63, 'a')));
  EXPECT_FALSE(kHostNameRule.Permits(std::string(64, 'a')));
}

TEST(NameRuleTest, WhatACloudPermits) {
  constexpr NameRule kTag{.marks = "_-", .least = 0, .most = 3, .may_have_capitals = true};
  for (const char* good : {"", "A", "1_", "-"}) EXPECT_TRUE(kTag.Permits(good)) << good;
  for (const char* bad : {"abcd", "a.", "\xc3\xa4"}) EXPECT_FALSE(kTag.Permits(bad)) << bad;
}

}  // namespace
}  // namespace nodepool::driver::cloud
