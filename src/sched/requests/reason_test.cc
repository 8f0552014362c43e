#include "sched/requests/reason.h"

#include <gtest/gtest.h>

#include "sched/requests/question.h"

namespace nodepool::sched {

namespace {

PoolKey Main(const char* provider) { return {ProviderName(provider), PoolName("main")}; }

RequestReason Of(std::string_view code, const char* provider) {
  return {std::string(code), Main(provider), std::string(code), ""};
}

std::string DecidesOf(const std::vector<RequestReason>& reasons) {
  const RequestReason* decides = DecidingReason(reasons);
  return decides == nullptr ? "" : decides->code + " " + decides->pool.provider.value;
}

// WHY-1
TEST(DecidingReasonTest, WhatCouldServeItFirstDecides) {
  EXPECT_EQ(DecidesOf({}), "");
  EXPECT_EQ(DecidesOf({Of("others-can-serve", "a"), Of("tenant-limit", "b"), Of("provider-unusable", "c")}),
            "tenant-limit b");
  EXPECT_EQ(DecidesOf({Of("provider-unusable", "a"), Of("capacity-reserved", "b")}), "capacity-reserved b");
  EXPECT_EQ(DecidesOf({Of("launcher-silent", ""), Of("provider-unusable", "a")}), "provider-unusable a");
  EXPECT_EQ(DecidesOf({Of("others-can-serve", "a"), Of("launcher-silent", "")}), "launcher-silent ");
}

TEST(DecidingReasonTest, OfEqualsTheFirst) {
  EXPECT_EQ(DecidesOf({Of("no-free-node", "b"), Of("no-free-node", "a")}), "no-free-node b");
}

TEST(DecidingReasonTest, WhatIsLeftToOthersDecidesOnlyAlone) {
  for (const char* code :
       {"preferred-pool", "other-provider-wanted", "others-can-serve", "declined-before"}) {
    EXPECT_TRUE(IsLeftToOthers(code)) << code;
    EXPECT_EQ(DecidesOf({Of(code, "a"), Of("pool-disabled", "b")}), "pool-disabled b");
    EXPECT_EQ(DecidesOf({Of(code, "a")}), std::string(code) + " a");
  }
  EXPECT_FALSE(IsLeftToOthers("tenant-limit"));
}

// Of a launcher of a later version.
TEST(DecidingReasonTest, UnknownCodesCountAsFaults) {
  EXPECT_EQ(RankOf("a-new-one"), RankOf("provider-fault"));
  EXPECT_FALSE(IsLeftToOthers("a-new-one"));
}

TEST(DecidingReasonTest, EveryReasonHasItsRank) {
  std::set<int> ranks;
  int count = 0;
  for (int i = 1; i <= static_cast<int>(Reason::kProviderUnusable); ++i, ++count)
    ranks.insert(RankOf(CodeOf(static_cast<Reason>(i))));
  EXPECT_EQ(ranks.size(), static_cast<std::size_t>(count));
}

TEST(DecidingReasonTest, SentencesNameWhatTheReasonIsAbout) {
  EXPECT_EQ(SentenceOf("capacity", Main("ovh"), "uses 2 of 2 instances"), "ovh main uses 2 of 2 instances");
  EXPECT_EQ(SentenceOf("provider-unusable", Main("ovh"), "cannot be used: away"),
            "provider ovh cannot be used: away");
  EXPECT_EQ(SentenceOf("tenant-limit", Main("ovh"), "tenant t has 2 of max-servers 2"),
            "tenant t has 2 of max-servers 2");
}

}  // namespace

}  // namespace nodepool::sched
