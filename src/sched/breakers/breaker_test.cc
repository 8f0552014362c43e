#include "sched/breakers/breaker.h"

#include <gmock/gmock.h>

namespace nodepool::sched {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr auto kReady = std::nullopt;
const BreakerKey kProvider{ProviderName("cloud")};
const BreakerKey kPool{ProviderName("cloud"), PoolName("main")};
const BreakerKey kLabel{ProviderName("cloud"), PoolName("main"), LabelName("small")};

class JudgeTest : public ::testing::Test {
 protected:
  // An attempt now, then a second passes.
  void Attempt(std::optional<FailureKind> failure, const std::string& label = "small",
               const std::string& pool = "main") {
    attempts_.Add({now_, PoolName(pool), LabelName(label), failure, failure ? "it said " + label : ""});
    now_ += seconds(1);
  }
  void Attempts(int count, std::optional<FailureKind> failure) {
    for (int i = 0; i < count; ++i) Attempt(failure);
  }
  std::optional<Breaker> Judged(const BreakerKey& key = kLabel) {
    return Judge(key, attempts_, settings_, now_);
  }

  SteadyTime now_{};
  RecentAttempts attempts_;
  BreakerSettings settings_;
};

// BRK-2
TEST_F(JudgeTest, OpensWhenEnoughHaveFailed) {
  Attempts(2, FailureKind::kKeyScan);
  EXPECT_FALSE(Judged());
  Attempt(FailureKind::kBoot);
  std::optional<Breaker> opened = Judged();
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->kind, "key-scan");
  EXPECT_EQ(opened->kinds, "key-scan 2, boot 1");
  EXPECT_EQ(opened->failures, 3);
  EXPECT_EQ(opened->attempts, 3);
  EXPECT_EQ(opened->said, "it said small");
}

// BRK-2
TEST_F(JudgeTest, StaysClosedWhileMostLaunchesWork) {
  Attempts(8, kReady);
  Attempts(3, FailureKind::kKeyScan);
  EXPECT_FALSE(Judged()) << "3 of 11";
  Attempt(kReady);
  Attempt(FailureKind::kKeyScan);
  EXPECT_TRUE(Judged()) << "4 of 13";
}

// BRK-2
TEST_F(JudgeTest, OldAttemptsDoNotCount) {
  Attempts(2, FailureKind::kKeyScan);
  now_ += settings_.window;
  Attempt(FailureKind::kKeyScan);
  EXPECT_FALSE(Judged());
}

// BRK-2
TEST_F(JudgeTest, OnlyTheNewestAttemptsCount) {
  Attempts(1000, kReady);
  for (int i = 0; i < 5; ++i) {
    Attempt(FailureKind::kBoot);
    Attempt(kReady);
  }
  EXPECT_FALSE(Judged());
  Attempt(FailureKind::kBoot);
  EXPECT_TRUE(Judged()) << "6 of the last 20";
}

// BRK-2
TEST_F(JudgeTest, WhatWorkedForLongAndFailsNowIsBroken) {
  Attempts(1000, kReady);
  Attempts(3, FailureKind::kBoot);
  Attempts(5, FailureKind::kQuota);
  EXPECT_FALSE(Judged());
  Attempt(FailureKind::kBoot);
  EXPECT_TRUE(Judged());
}

// BRK-18
TEST(SuccessesToClose, AreMoreAfterEachRelapse) {
  auto after = [](std::int64_t relapses) { return SuccessesToClose({.relapses = relapses}); };
  EXPECT_EQ(after(0), 1);
  EXPECT_EQ(after(1), 4);
  EXPECT_EQ(after(3), 10);
  EXPECT_EQ(after(1'000'000), 10);
  EXPECT_EQ(after(-1), 1) << "a record may say anything";
}

// BRK-3
TEST_F(JudgeTest, AFullCloudThatGivesMachinesNowAndThenIsNotBroken) {
  Attempt(kReady);
  Attempts(10, FailureKind::kQuota);
  Attempts(5, FailureKind::kCapacity);
  EXPECT_FALSE(Judged());
  Attempts(5, FailureKind::kQuota);
  EXPECT_TRUE(Judged()) << "it has given none for twenty attempts";
}

// BRK-3
TEST_F(JudgeTest, RefusalsDoNotHideOtherFailures) {
  Attempt(kReady);
  Attempts(10, FailureKind::kQuota);
  Attempts(3, FailureKind::kImage);
  EXPECT_TRUE(Judged());
}

// BRK-4
TEST_F(JudgeTest, APoolOpensWhenSeveralLabelsFail) {
  Attempts(5, FailureKind::kBoot);
  EXPECT_FALSE(Judged(kPool)) << "of one label only";
  Attempt(kReady, "large");
  EXPECT_FALSE(Judged(kPool)) << "the other one works";
  Attempt(FailureKind::kBoot, "large");
  EXPECT_TRUE(Judged(kPool));
}

// BRK-4
TEST_F(JudgeTest, AProviderOpensWhenSeveralPoolsFail) {
  Attempts(3, FailureKind::kBoot);
  Attempt(FailureKind::kBoot, "large");
  EXPECT_FALSE(Judged(kProvider));
  Attempt(FailureKind::kBoot, "small", "other");
  EXPECT_TRUE(Judged(kProvider));
}

// BRK-4
TEST_F(JudgeTest, RefusedCredentialsAreTheProviders) {
  Attempts(3, FailureKind::kAuthentication);
  EXPECT_FALSE(Judged(kPool));
  ASSERT_TRUE(Judged(kProvider));
  EXPECT_EQ(Judged(kProvider)->kind, "authentication");
  Attempt(kReady);
  EXPECT_FALSE(Judged(kProvider));
}

// BRK-12
TEST_F(JudgeTest, ThresholdsAreSettings) {
  settings_.failures = 5;
  Attempts(4, FailureKind::kBoot);
  EXPECT_FALSE(Judged());
  Attempt(FailureKind::kBoot);
  EXPECT_TRUE(Judged());
  settings_.share = 100;
  Attempt(kReady);
  EXPECT_FALSE(Judged());
  settings_.share = 50;
  settings_.is_on = false;
  EXPECT_FALSE(Judged());
}

// BRK-2
TEST_F(JudgeTest, NothingGrowsWithoutBound) {
  for (int i = 0; i < 1000; ++i)
    attempts_.Add(
        {now_, PoolName("main"), LabelName("small"), FailureKind::kBoot, std::string(100'000, 'x')});
  EXPECT_EQ(Judged()->attempts, static_cast<std::int64_t>(RecentAttempts::kMost));
  EXPECT_LE(Judged()->said->size(), RecentAttempts::kMostSaid + 10);
}

// BRK-8
TEST(ProbePauses, DoubleUpToTheLongest) {
  BreakerSettings settings;
  EXPECT_EQ(ProbePause(settings, 0, 0.5), seconds(30));
  EXPECT_EQ(ProbePause(settings, 1, 0.5), seconds(60));
  EXPECT_EQ(ProbePause(settings, 4, 0.5), seconds(480));
  EXPECT_EQ(ProbePause(settings, 5, 0.5), minutes(10));
  EXPECT_EQ(ProbePause(settings, 1'000'000'000, 0.5), minutes(10));
}

// BRK-8
TEST(ProbePauses, HaveJitter) {
  BreakerSettings settings;
  EXPECT_EQ(ProbePause(settings, 0, 0), std::chrono::milliseconds(22'500));
  EXPECT_EQ(ProbePause(settings, 0, 1), std::chrono::milliseconds(37'500));
}

// BRK-8
TEST(Standings, OneLaunchIsTheProbe) {
  EXPECT_EQ(StandingOf({}), Standing::kOpen);
  EXPECT_EQ(StandingOf({.is_own_probe = true}), Standing::kMayProbe);
  EXPECT_EQ(StandingOf({.is_own_probe = true, .is_taken = true}), Standing::kOpen);
}

// BRK-16
TEST(ProbersOfOtherLaunchers, AreWaitedForWhileTheyAreThere) {
  BreakerSettings settings;
  Breaker breaker;
  EXPECT_TRUE(IsProbeDue(breaker, {}, settings));
  breaker.prober = "launcher/np020000000001";
  EXPECT_FALSE(IsProbeDue(breaker, {.is_alive = true}, settings));
  EXPECT_TRUE(IsProbeDue(breaker, {.is_alive = false}, settings));
  EXPECT_TRUE(IsProbeDue(breaker, {.is_alive = true, .since = settings.probe_max}, settings));
  EXPECT_FALSE(IsProbeDue(breaker, {.is_self = true, .since = settings.probe_max}, settings));
}

}  // namespace
}  // namespace nodepool::sched
