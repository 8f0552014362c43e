#include "model/breaker.h"

#include <gmock/gmock.h>

namespace nodepool {
namespace {

using ::testing::ElementsAre;

// BRK-14
TEST(BreakerRecord, IsReadAsItIsWritten) {
  Breaker breaker{.kind = "key-scan",
                  .kinds = "key-scan 3, boot 1",
                  .failures = 4,
                  .attempts = 5,
                  .said = "timeout",
                  .opened = FromSeconds(1'700'000'000),
                  .next_probe = FromSeconds(1'700'000'030),
                  .failed_probes = 1,
                  .relapses = 3,
                  .good_probes = 7,
                  .prober = "launcher/np010000000003",
                  .tried_anyway = 2,
                  .opened_by = "launcher/np020000000001"};
  std::string json = ToJson(breaker);
  EXPECT_EQ(
      json,
      R"({"kind": "key-scan", "kinds": "key-scan 3, boot 1", "failures": 4, "attempts": 5, )"
      R"("said": "timeout", "opened": 1700000000.0, "next_probe": 1700000030.0, "failed_probes": 1, )"
      R"("relapses": 3, "good_probes": 7, "prober": "launcher/np010000000003", "tried_anyway": 2, "opened_by": "launcher/np020000000001"})");
  Expected<Breaker> read = ParseBreaker(json);
  ASSERT_TRUE(read);
  EXPECT_EQ(ToJson(*read), json);
}

// BRK-14
TEST(BreakerRecord, KeysOfLaterVersionsStay) {
  Expected<Breaker> read = ParseBreaker(R"({"kind": "weather", "colour": "red"})");
  ASSERT_TRUE(read);
  EXPECT_THAT(ToJson(*read), ::testing::HasSubstr(R"("colour": "red")"));
  EXPECT_FALSE(ParseFailureKind(*read->kind));
  EXPECT_FALSE(ParseBreaker("[]"));
  EXPECT_FALSE(ParseBreaker(R"({"failures": "many"})"));
}

TEST(BreakerText, NamesWhatItIsOf) {
  PoolKey pool{ProviderName("aws"), PoolName("main")};
  std::vector<std::string> texts;
  for (const BreakerKey& key : BreakerKeysOf(pool, LabelName("small"))) texts.push_back(ToString(key));
  EXPECT_THAT(texts, ElementsAre("provider aws", "pool main of provider aws",
                                 "label small in pool main of provider aws"));
}

// BRK-14
TEST(BreakerText, IsShortAndHarmless) {
  Breaker breaker;
  breaker.failures = breaker.attempts = 3;
  breaker.kinds = "boot 3";
  breaker.said = "\x1b[31m\nred";
  EXPECT_EQ(EvidenceOf(breaker), "3 of 3 launches failed (boot 3), the last one: \\x1b[31m\\x0ared");
  breaker.said = std::string(100'000, 'x');
  EXPECT_LT(EvidenceOf(breaker).size(), 500u);
}

TEST(FailureKinds, HaveWords) {
  for (FailureKind kind :
       {FailureKind::kAuthentication, FailureKind::kQuota, FailureKind::kCapacity, FailureKind::kBoot,
        FailureKind::kKeyScan, FailureKind::kImage, FailureKind::kOther})
    EXPECT_EQ(ParseFailureKind(ToString(kind)), kind);
}

}  // namespace
}  // namespace nodepool
