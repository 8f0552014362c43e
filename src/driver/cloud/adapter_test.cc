#include "driver/cloud/adapter.h"

#include <gtest/gtest.h>

#include <string>

#include "driver/provider_section.h"

namespace nodepool::driver::cloud {

namespace {

struct OwnLabel : LabelConfig {
  bool is_fast = false;
};
struct OwnPool : PoolConfig {
  bool is_wide = false;
};
struct OwnConfig : ProviderConfig {};
struct OthersConfig : ProviderConfig {};

OwnLabel Named(const std::string& name, bool is_fast) {
  OwnLabel label;
  label.name = LabelName(name);
  label.is_fast = is_fast;
  return label;
}

// Pools "a" with the labels "one" and "two", and "b" with "three".
OwnConfig Example() {
  OwnConfig config;
  auto a = std::make_shared<OwnPool>();
  a->Offer(std::make_shared<OwnLabel>(Named("one", false)));
  a->Offer(std::make_shared<OwnLabel>(Named("two", true)));
  auto b = std::make_shared<OwnPool>();
  b->is_wide = true;
  b->Offer(std::make_shared<OwnLabel>(Named("three", false)));
  config.pools[PoolName("a")] = std::move(a);
  config.pools[PoolName("b")] = std::move(b);
  return config;
}

TEST(OwnTypes, SettingsAreSharedAsTheTypeOfTheirDriver) {
  std::shared_ptr<const ProviderConfig> config = std::make_shared<OwnConfig>();
  std::shared_ptr<const OwnConfig> own = As<OwnConfig>(config);
  EXPECT_EQ(own.get(), config.get());
  EXPECT_EQ(&As<OwnConfig>(*config), config.get());
  config.reset();
  EXPECT_EQ(own.use_count(), 1);
}

TEST(OwnTypes, SettingsOfAnotherDriverAreRefused) {
  std::shared_ptr<const ProviderConfig> config = std::make_shared<OthersConfig>();
  try {
    As<OwnConfig>(config);
    FAIL() << "they are taken for our own";
  } catch (const Error& error) {
    EXPECT_EQ(error.verdict(), Verdict::kFail);
    EXPECT_STREQ(error.what(), "these settings were made by another driver");
  }
  EXPECT_THROW(As<OwnLabel>(LabelConfig()), Error);
}

TEST(OwnTypes, PoolsAndLabelsAreListedAsTheirTypes) {
  const OwnConfig config = Example();
  std::vector<const OwnPool*> pools = PoolsOf<OwnPool>(config);
  ASSERT_EQ(pools.size(), 2u);
  EXPECT_FALSE(pools[0]->is_wide);
  EXPECT_TRUE(pools[1]->is_wide);
  std::vector<const OwnLabel*> labels = LabelsOf<OwnLabel>(*pools[0]);
  ASSERT_EQ(labels.size(), 2u);
  EXPECT_TRUE(labels[1]->is_fast);
  EXPECT_EQ(LabelsOf<OwnLabel>(config).size(), 3u);
  EXPECT_TRUE(AnyLabel<OwnLabel>(config, &OwnLabel::is_fast));
  EXPECT_EQ(FindLabel<OwnLabel>(config, &OwnLabel::is_fast), labels[1]);
  EXPECT_EQ(FindLabel<OwnLabel>(config, [](const OwnLabel&) { return false; }), nullptr);
  EXPECT_TRUE(AnyPool<OwnPool>(config, &OwnPool::is_wide));
}

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
