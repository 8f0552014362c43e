#include "sched/breakers/breaker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <deque>

#include "sched/requests/assign_for_test.h"

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

const LabelName kSmall("small");

NodeRequest RequestFor(std::vector<std::string> labels = {"small"}) {
  NodeRequest request;
  request.state = RequestState::kRequested;
  for (std::string& label : labels) request.node_types.emplace_back(std::move(label));
  return request;
}

PoolView PoolWith(const std::string& provider, Standing standing, int priority = 100) {
  PoolView pool;
  pool.key = {ProviderName(provider), PoolName("main")};
  pool.launcher = LauncherId(provider);
  pool.priority = priority;
  pool.labels[kSmall].need = {{"instances", 1}};
  pool.labels[kSmall].standing = standing;
  pool.labels[LabelName("large")].need = {{"instances", 1}};
  return pool;
}

RegisteredPool AsRegistered(const PoolView& pool) {
  RegisteredPool registered{pool.launcher, pool.key.provider, pool.priority, false, {}, pool.key.pool};
  for (const auto& [label, view] : pool.labels) {
    registered.labels.insert(label);
    if (view.standing != Standing::kClosed) registered.broken_labels.insert(label);
  }
  return registered;
}

class BreakerRoutingTest : public ::testing::Test {
 protected:
  void Add(PoolView pool) {
    others.push_back(AsRegistered(pool));
    own.push_back(std::move(pool));
  }
  void Wait(NodeRequest request) {
    requests.push_back(std::move(request));
    queues.Put(RequestId("100-000000000" + std::to_string(requests.size())), requests.back());
  }
  Plan Assigned() {
    Registry registry(others);
    Snapshot snapshot{.pools = own, .registry = &registry, .queues = &queues};
    return Assign(std::move(snapshot));
  }
  Decision Decide(const PoolView& pool, const NodeRequest& request = RequestFor()) {
    return Consider(pool, Registry(others), nullptr, request);
  }

  std::vector<PoolView> own;
  std::vector<RegisteredPool> others;  // with our own
  std::deque<NodeRequest> requests;    // the queues refer to them
  Queues queues;
};

// BRK-5
TEST_F(BreakerRoutingTest, AnotherPoolGetsTheRequest) {
  Add(PoolWith("broken", Standing::kOpen));
  Add(PoolWith("healthy", Standing::kClosed, 200));
  EXPECT_EQ(Decide(own[0]).reason, Reason::kBreakerOpen);
  EXPECT_EQ(Decide(own[0]).detail, "healthy main");
  EXPECT_EQ(Decide(own[1]).kind, Decision::Kind::kAccept) << "the other one is not preferred any more";
  EXPECT_EQ(Decide(own[0], RequestFor({"large"})).kind, Decision::Kind::kAccept) << "another label";
  Wait(RequestFor());
  ASSERT_EQ(Assigned().accept.size(), 1u);
  EXPECT_EQ(Assigned().accept[0].pool, own[1].key);
}

// BRK-5
TEST_F(BreakerRoutingTest, ReadyNodesAreStillHandedOut) {
  std::set<NodeId> ready = {NodeId("0000000001")};
  PoolView broken = PoolWith("broken", Standing::kOpen);
  broken.labels[kSmall].free_nodes = &ready;
  Add(broken);
  Add(PoolWith("healthy", Standing::kClosed));
  EXPECT_EQ(Decide(own[0]).kind, Decision::Kind::kAccept);
  EXPECT_EQ(Decide(own[0], RequestFor({"small", "small"})).reason, Reason::kBreakerOpen);
}

// BRK-6
TEST_F(BreakerRoutingTest, WithoutAnotherPoolItIsTriedAnyway) {
  Add(PoolWith("broken", Standing::kOpen));
  Decision decision = Decide(own[0]);
  EXPECT_EQ(decision.kind, Decision::Kind::kAccept);
  EXPECT_EQ(decision.standing, Standing::kOpen);
  Wait(RequestFor());
  ASSERT_EQ(Assigned().accept.size(), 1u);
  EXPECT_EQ(Assigned().accept[0].standing, Standing::kOpen);
}

// BRK-6
TEST_F(BreakerRoutingTest, APoolThatCannotServeIsNoOtherPool) {
  Add(PoolWith("broken", Standing::kOpen));
  RegisteredPool other = AsRegistered(PoolWith("other", Standing::kClosed));
  auto tries_with = [&](const std::function<void(RegisteredPool&, NodeRequest&)>& change) {
    NodeRequest request = RequestFor();
    others.resize(1);
    others.push_back(other);
    change(others.back(), request);
    return Decide(own[0], request).kind == Decision::Kind::kAccept;
  };
  EXPECT_FALSE(tries_with([](RegisteredPool&, NodeRequest&) {}));
  EXPECT_TRUE(tries_with([](RegisteredPool& pool, NodeRequest&) { pool.broken_labels = {kSmall}; }));
  EXPECT_TRUE(tries_with([](RegisteredPool& pool, NodeRequest&) { pool.is_failing = true; }));
  EXPECT_TRUE(tries_with([](RegisteredPool& pool, NodeRequest&) { pool.is_provider_paused = true; }));
  EXPECT_TRUE(tries_with([](RegisteredPool& pool, NodeRequest&) { pool.labels.erase(kSmall); }));
  EXPECT_TRUE(tries_with([](RegisteredPool& pool, NodeRequest& r) { r.declined_by = {pool.id}; }));
  EXPECT_TRUE(tries_with([](RegisteredPool&, NodeRequest& r) { r.provider = ProviderName("broken"); }));
}

// BRK-6: a launcher of the Python implementation knows no breakers, and would leave the request to this pool.
TEST_F(BreakerRoutingTest, APythonLauncherMustBeWillingToTakeIt) {
  Add(PoolWith("broken", Standing::kOpen));
  RegisteredPool python = AsRegistered(PoolWith("python", Standing::kClosed, 200));
  python.heeds_breakers = false;
  others.push_back(python);
  EXPECT_EQ(Decide(own[0]).kind, Decision::Kind::kAccept);
  others.back().priority = 100;
  EXPECT_EQ(Decide(own[0]).reason, Reason::kBreakerOpen);
}

NodeRequest ProbeFor(const std::string& provider) {
  NodeRequest request = RequestFor();
  request.requestor = std::string(kMinReadyRequestor);
  request.provider = ProviderName(provider);
  return request;
}

// BRK-8
TEST_F(BreakerRoutingTest, NoRequestOfOthersIsTheProbe) {
  Add(PoolWith("broken", Standing::kMayProbe));
  Add(PoolWith("healthy", Standing::kClosed));
  EXPECT_EQ(Decide(own[0]).reason, Reason::kBreakerOpen);
  Registry registry(others);
  EXPECT_TRUE(IsProbeWanted(own[0], registry, RequestFor()));
  EXPECT_FALSE(IsProbeWanted(own[1], registry, RequestFor())) << "it has no open breaker";
  EXPECT_FALSE(IsProbeWanted(own[0], registry, RequestFor({"large"}))) << "another label";
  EXPECT_FALSE(IsProbeWanted(PoolWith("broken", Standing::kOpen), registry, RequestFor()));
  EXPECT_FALSE(IsProbeWanted(own[0], registry, ProbeFor("broken")));
}

// BRK-8
TEST_F(BreakerRoutingTest, OnlyThePoolThatMayBeProbedTakesTheProbe) {
  Add(PoolWith("broken", Standing::kMayProbe, 100));
  Add(PoolWith("healthy", Standing::kClosed, 1));
  EXPECT_EQ(Decide(own[0], ProbeFor("broken")).standing, Standing::kMayProbe);
  EXPECT_EQ(Decide(own[0], ProbeFor("broken")).kind, Decision::Kind::kAccept);
  EXPECT_EQ(Decide(own[1], ProbeFor("broken")).kind, Decision::Kind::kDefer);
  NodeRequest failed = ProbeFor("broken");
  failed.declined_by = {own[0].launcher};
  EXPECT_EQ(Decide(own[1], failed).kind, Decision::Kind::kDefer) << "also when the pool has declined it";
  for (Standing standing : {Standing::kOpen, Standing::kClosed})
    EXPECT_EQ(Decide(PoolWith("broken", standing), ProbeFor("broken")).kind, Decision::Kind::kDefer);
}

// BRK-6, BRK-8
TEST_F(BreakerRoutingTest, WithoutAnotherPoolOneRequestIsTheProbe) {
  Add(PoolWith("broken", Standing::kMayProbe));
  Wait(RequestFor());
  Wait(RequestFor());
  Plan plan = Assigned();
  ASSERT_EQ(plan.accept.size(), 2u);
  EXPECT_EQ(plan.accept[0].standing, Standing::kMayProbe);
  EXPECT_EQ(plan.accept[1].standing, Standing::kOpen);
}

// BRK-7
TEST_F(BreakerRoutingTest, WhatWasAcceptedIsLeftByTheSameRule) {
  Add(PoolWith("broken", Standing::kOpen));
  NodeRequest pending = RequestFor();
  pending.state = RequestState::kPending;
  EXPECT_FALSE(IsLeftByBreaker(own[0], Registry(others), pending));
  Add(PoolWith("healthy", Standing::kClosed));
  EXPECT_TRUE(IsLeftByBreaker(own[0], Registry(others), pending));
  EXPECT_FALSE(IsLeftByBreaker(own[1], Registry(others), pending));
}

// BRK-6: whatever breakers are open, and whatever the priorities, some pool takes the request.
TEST(BreakerRoutingProperty, NoRequestIsWithoutACandidate) {
  auto check = [] {
    std::vector<PoolView> pools;
    std::vector<RegisteredPool> registered;
    const int count = *rc::gen::inRange(1, 5);
    for (int i = 0; i < count; ++i) {
      auto standing = *rc::gen::element(Standing::kClosed, Standing::kMayProbe, Standing::kOpen);
      pools.push_back(PoolWith("provider" + std::to_string(i), standing, *rc::gen::inRange(1, 4)));
      registered.push_back(AsRegistered(pools.back()));
    }
    NodeRequest request = RequestFor();
    if (*rc::gen::arbitrary<bool>())
      request.provider = pools[*rc::gen::inRange<std::size_t>(0, pools.size())].key.provider;
    Registry registry(registered);
    RC_ASSERT(std::ranges::any_of(pools, [&](const PoolView& pool) {
      return Consider(pool, registry, nullptr, request).kind == Decision::Kind::kAccept;
    }));
  };
  EXPECT_TRUE(rc::check("some pool accepts", check));
}

}  // namespace

}  // namespace nodepool::sched
