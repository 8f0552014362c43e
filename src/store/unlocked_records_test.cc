#include "store/unlocked_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/cache/cached_records.h"
#include "store/cache/caches.h"
#include "store/cache/record_cache.h"
#include "store/store_for_test.h"

namespace nodepool::store {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class ProviderPausesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cache_.Start();
    world_.Run(cache_.WaitSynced());
    changes_ = cache_.OnChange(
        [this](const ProviderName& provider, const ProviderPause* before, const ProviderPause* after) {
          seen_.push_back(provider.value + (before ? " was" : "") + (after ? " is" : ""));
        });
  }
  void TearDown() override { world_.Run(cache_.Stop()); }

  void Pause(const std::string& provider, ProviderPause pause = {}) {
    world_.Run(world_.store.provider_pauses.Pause(ProviderName(provider), std::move(pause)));
    world_.Run(cache_.CatchUp());
  }
  bool Unpause(const std::string& provider) {
    bool was_paused = world_.Run(world_.store.provider_pauses.Unpause(ProviderName(provider)));
    world_.Run(cache_.CatchUp());
    return was_paused;
  }

  World world_;
  RecordCache<ProviderPause> cache_{world_.time.loop(), world_.faulty};
  std::vector<std::string> seen_;
  Subscription changes_;
  log::Capture log_;
};

// ACT-1
TEST_F(ProviderPausesTest, TheSwitchIsARecord) {
  Pause("cloud-a", {"upgrade", true, "alice@host", FromSeconds(1'700'000'000), {}});
  EXPECT_EQ(
      world_.Data("/nodepool/paused-providers/cloud-a"),
      R"({"reason": "upgrade", "drain": true, "paused_by": "alice@host", "paused_time": 1700000000.0})");
  ASSERT_NE(cache_.Find(ProviderName("cloud-a")), nullptr);
  EXPECT_EQ(WhoAndWhy(*cache_.Find(ProviderName("cloud-a"))), "alice@host: upgrade");
  Pause("cloud-a", {std::nullopt, false, "ops", FromSeconds(1'700'000'000), {}});
  EXPECT_EQ(WhoAndWhy(*cache_.Find(ProviderName("cloud-a"))), "ops");
  EXPECT_TRUE(Unpause("cloud-a"));
  EXPECT_FALSE(Unpause("cloud-a"));
  EXPECT_THAT(cache_.all(), IsEmpty());
  EXPECT_THAT(seen_, ElementsAre("cloud-a is", "cloud-a was is", "cloud-a was"));
}

// ACT-1
TEST_F(ProviderPausesTest, EveryNameHasAPlace) {
  for (const std::string& name : {std::string("a/b"), std::string(".."), std::string("%2e"),
                                  std::string("über"), std::string("\0x", 2), std::string("a b")}) {
    Pause(name);
    EXPECT_NE(cache_.Find(ProviderName(name)), nullptr) << name;
    EXPECT_TRUE(Unpause(name));
  }
  EXPECT_THAT(world_.Children("/nodepool/paused-providers"), IsEmpty());
}

// ACT-2
TEST_F(ProviderPausesTest, WhatCannotBeReadPausesAllTheSame) {
  world_.Put("/nodepool/paused-providers/cloud-a", "{");
  world_.Put("/nodepool/paused-providers/cloud-b", "");
  world_.Put("/nodepool/paused-providers/cloud-a/below", "{}");
  world_.Put("/nodepool/paused-providers/%zz", "{}");
  world_.Run(cache_.CatchUp());
  EXPECT_EQ(cache_.all().size(), 2u);
  EXPECT_EQ(WhoAndWhy(*cache_.Find(ProviderName("cloud-a"))), "an unknown operator");
  EXPECT_EQ(cache_.malformed_count(), 2u);
  EXPECT_EQ(log_.Count("/nodepool/paused-providers/cloud-a"), 1);
}

// ACT-1
TEST_F(ProviderPausesTest, LostAnswersDoNotMatter) {
  using Fault = testing::FaultyZk::Fault;
  for (Fault fault : {Fault::kBefore, Fault::kAfter}) {
    for (int failing = 0; failing < 4; ++failing) {
      Unpause("cloud-a");
      int writes = 0;
      world_.faulty.FailWhen([&](const testing::FaultyZk::Call& call) {
        return call.is_write && writes++ == failing ? fault : Fault::kNone;
      });
      Pause("cloud-a", {std::to_string(failing), false, "ops", std::nullopt, {}});
      EXPECT_EQ(cache_.Find(ProviderName("cloud-a"))->reason, std::to_string(failing));
      world_.faulty.FailNever();
    }
  }
}

// ACT-13
TEST(PauseText, IsShortAndHarmless) {
  ProviderPause pause{"\x1b[31m\nred", false, "ops", std::nullopt, {}};
  EXPECT_EQ(WhoAndWhy(pause), "ops: \\x1b[31m\\x0ared");
  pause.reason = std::string(100'000, 'x');
  EXPECT_LT(WhoAndWhy(pause).size(), 400u);
}

const BreakerKey kLabel{ProviderName("cloud"), PoolName("main"), LabelName("small")};

class BreakersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cache_.Start();
    world_.Run(cache_.WaitSynced());
    changes_ = cache_.OnChange([this](const BreakerKey& key, const Breaker* before, const Breaker* after) {
      seen_.push_back(key.label.value + (before ? " was" : "") + (after ? " is" : ""));
    });
  }
  void TearDown() override { world_.Run(cache_.Stop()); }

  std::optional<Breaker> Update(const Breakers::Change& change, const BreakerKey& key = kLabel) {
    Task<std::optional<Breaker>> update = world_.store.breakers.Update(key, change);
    std::optional<Breaker> after = world_.Run(std::move(update));
    world_.Run(cache_.CatchUp());
    return after;
  }
  std::optional<Breaker> Open(const BreakerKey& key = kLabel) {
    return Update([](std::optional<Breaker> now) { return now ? now : std::optional(Breaker()); }, key);
  }
  std::optional<Breaker> Close(const BreakerKey& key = kLabel) {
    return Update([](const std::optional<Breaker>&) { return std::optional<Breaker>(); }, key);
  }
  std::optional<Breaker> Try() {
    return Update([](std::optional<Breaker> now) {
      if (now) ++now->tried_anyway;
      return now;
    });
  }

  World world_;
  RecordCache<Breaker> cache_{world_.time.loop(), world_.faulty};
  std::vector<std::string> seen_;
  Subscription changes_;
  log::Capture log_;
};

// BRK-14
TEST_F(BreakersTest, AnOpenBreakerIsARecord) {
  EXPECT_TRUE(Open());
  EXPECT_TRUE(world_.Exists("/nodepool/breakers/cloud:main:small"));
  EXPECT_NE(cache_.Find(kLabel), nullptr);
  EXPECT_EQ(Try()->tried_anyway, 1);
  EXPECT_EQ(cache_.Find(kLabel)->tried_anyway, 1);
  EXPECT_FALSE(Close());
  EXPECT_FALSE(Close());
  EXPECT_FALSE(Try()) << "a closed one is not changed";
  EXPECT_THAT(cache_.all(), IsEmpty());
  EXPECT_THAT(world_.Children("/nodepool/breakers"), IsEmpty());
  EXPECT_THAT(seen_, ElementsAre("small is", "small was is", "small was"));
}

// BRK-14
TEST_F(BreakersTest, EveryNameHasAPlace) {
  for (const std::string& name : {std::string("a/b"), std::string(".."), std::string("a:b"),
                                  std::string("%3A"), std::string("über"), std::string("\0x", 2)}) {
    BreakerKey key{ProviderName(name), PoolName(name), LabelName(name)};
    for (const BreakerKey& each : BreakerKeysOf({key.provider, key.pool}, key.label)) {
      Open(each);
      EXPECT_NE(cache_.Find(each), nullptr) << name;
      Close(each);
    }
  }
  EXPECT_THAT(world_.Children("/nodepool/breakers"), IsEmpty());
}

// BRK-15
TEST_F(BreakersTest, WhatCannotBeReadIsClosedAndReplaced) {
  world_.Put("/nodepool/breakers/cloud:main:small", "{");
  world_.Put("/nodepool/breakers/cloud:main:small:more", "{}");
  world_.Put("/nodepool/breakers/%zz", "{}");
  world_.Run(cache_.CatchUp());
  EXPECT_THAT(cache_.all(), IsEmpty());
  EXPECT_EQ(cache_.malformed_count(), 1u);
  EXPECT_EQ(log_.Count("/nodepool/breakers/cloud:main:small"), 1);
  Open();
  EXPECT_NE(cache_.Find(kLabel), nullptr);
}

// BRK-15
TEST_F(BreakersTest, AnotherLaunchersWriteIsNotLost) {
  Open();
  bool has_written = false;
  Breakers::Change change = [&](std::optional<Breaker> now) {
    Breaker others = *now;
    others.prober = "launcher/np020000000001";
    if (!std::exchange(has_written, true)) world_.Put("/nodepool/breakers/cloud:main:small", ToJson(others));
    ++now->tried_anyway;
    return now;
  };
  std::optional<Breaker> after = Update(change);
  EXPECT_EQ(after->prober, "launcher/np020000000001");
  EXPECT_EQ(after->tried_anyway, 1);
}

// BRK-15
TEST_F(BreakersTest, LostAnswersDoNotMatter) {
  using Fault = testing::FaultyZk::Fault;
  for (Fault fault : {Fault::kBefore, Fault::kAfter}) {
    for (int failing = 0; failing < 3; ++failing) {
      int writes = 0;
      world_.faulty.FailWhen([&](const testing::FaultyZk::Call& call) {
        return call.is_write && writes++ == failing ? fault : Fault::kNone;
      });
      Open();
      EXPECT_NE(cache_.Find(kLabel), nullptr);
      writes = 0;
      Close();
      EXPECT_EQ(cache_.Find(kLabel), nullptr);
      world_.faulty.FailNever();
    }
  }
}

class JobsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cache_.Start();
    world_.Run(cache_.WaitSynced());
  }
  void TearDown() override { world_.Run(cache_.Stop()); }

  NoteResult AddNote(std::string node, std::string job = "unit") {
    HoldNote note{job, HoldComment(job), FromSeconds(1'700'000'000), {}};
    NoteResult result =
        world_.Run(world_.store.jobs.AddHoldNote(NodeId(node), note, cache_.hold_notes_version()));
    world_.Run(cache_.CatchUp());
    return result;
  }

  World world_;
  JobCache cache_{world_.time.loop(), world_.faulty};
  log::Capture log_;
};

// D-67
TEST_F(JobsTest, RulesAreStoredByNumber) {
  JobId first = world_.Run(world_.store.jobs.CreateRule({"unit", 2, {}}));
  JobId second = world_.Run(world_.store.jobs.CreateRule({"unit", 2, {}}));
  EXPECT_EQ(first.value, "0000000000");
  EXPECT_EQ(world_.Data("/nodepool/jobs/0000000001"), R"({"name": "unit", "hold_on_failure": 2})");
  world_.Run(cache_.CatchUp());
  EXPECT_EQ(cache_.rules().size(), 2u);
  EXPECT_TRUE(world_.Run(world_.store.jobs.DeleteRule(first)));
  EXPECT_FALSE(world_.Run(world_.store.jobs.DeleteRule(first)));
  EXPECT_FALSE(world_.Run(world_.store.jobs.DeleteRule(JobId("holds"))));
  world_.Run(cache_.CatchUp());
  EXPECT_EQ(cache_.rules().begin()->first, second);
}

// D-08: each version is reported once, and the readable records are listed.
TEST_F(JobsTest, MalformedOnesAreReportedOnceAndSkipped) {
  world_.Put("/nodepool/jobs/0000000003", "{");
  world_.Put("/nodepool/jobs/0000000004", R"({"name": "a", "hold_on_failure": 1})");
  world_.Put("/nodepool/jobs/holds/0000000007", "[]");
  world_.Put("/nodepool/jobs/unheard", "{");
  world_.Put("/nodepool/jobs/0000000004/0000000001", "{");
  world_.Put("/nodepool/jobs/holdsome/0000000001", "{");
  world_.Run(cache_.CatchUp());
  EXPECT_EQ(cache_.malformed_count(), 2u);
  EXPECT_EQ(cache_.rules().size(), 1u);
  EXPECT_THAT(cache_.hold_notes(), IsEmpty());
  EXPECT_EQ(log_.Count("/nodepool/jobs/0000000003"), 1);
  world_.Put("/nodepool/jobs/0000000003", R"({"name": "b"})");
  world_.Run(cache_.CatchUp());
  EXPECT_EQ(cache_.rules().size(), 2u);
  EXPECT_EQ(cache_.malformed_count(), 2u);
}

// D-67
TEST_F(JobsTest, ANodeIsLockedTogetherWithItsNote) {
  Node node;
  node.SetState(NodeState::kUsed, world_.time.loop().Now());
  NodeId noted = world_.Run(world_.store.nodes.Create(node));
  NodeId other = world_.Run(world_.store.nodes.Create(node));
  NodeId bad = world_.Run(world_.store.nodes.Create(node));
  ASSERT_EQ(AddNote(noted.value), NoteResult::kOutdated);
  ASSERT_EQ(AddNote(noted.value), NoteResult::kDone);
  world_.Put("/nodepool/jobs/holds/" + bad.value, "[]");
  auto locked = world_.Run(world_.store.nodes.TryLockFree(noted));
  ASSERT_TRUE(locked);
  EXPECT_EQ(locked->note->hold_job, "unit");
  EXPECT_EQ(locked->node.record().state, NodeState::kUsed);
  EXPECT_TRUE(locked->node.is_held());
  EXPECT_FALSE(world_.Run(world_.store.nodes.TryLock(noted))) << "it is locked";
  EXPECT_FALSE(world_.Run(world_.store.nodes.TryLockFree(noted)));
  EXPECT_FALSE(world_.Run(world_.store.nodes.TryLockFree(other))->note);
  EXPECT_FALSE(world_.Run(world_.store.nodes.TryLockFree(bad))->note) << "the cache reports it";
  EXPECT_FALSE(world_.Run(world_.store.nodes.TryLockFree(NodeId("0000000099")))) << "there is no such node";
}

TEST_F(JobsTest, AHoldNoteIsDecidedOnAllExistingOnes) {
  EXPECT_EQ(AddNote("0000000001"), NoteResult::kOutdated) << "there was no place for them";
  EXPECT_EQ(AddNote("0000000001"), NoteResult::kDone);
  EXPECT_EQ(world_.Data("/nodepool/jobs/holds/0000000001"),
            R"({"hold_job": "unit", "comment": "Automatically held after failing unit", "created_time": )"
            R"(1700000000.0})");
  EXPECT_EQ(AddNote("0000000001"), NoteResult::kThere);
  std::int32_t seen = cache_.hold_notes_version();
  EXPECT_EQ(AddNote("0000000002"), NoteResult::kDone);
  EXPECT_EQ(world_.Run(world_.store.jobs.AddHoldNote(NodeId("0000000003"), {"unit", "", {}, {}}, seen)),
            NoteResult::kOutdated);
  EXPECT_FALSE(world_.Exists("/nodepool/jobs/holds/0000000003"));
  EXPECT_THAT(cache_.HoldNotesByJob(),
              ElementsAre(Pair("unit", ElementsAre(NodeId("0000000001"), NodeId("0000000002")))));
  world_.Run(world_.store.jobs.RemoveHoldNote(NodeId("0000000001")));
  world_.Run(world_.store.jobs.RemoveHoldNote(NodeId("0000000001")));
  world_.Run(cache_.CatchUp());
  EXPECT_EQ(cache_.FindHoldNote(NodeId("0000000001")), nullptr);
  EXPECT_EQ(cache_.hold_notes().size(), 1u);
}

TEST_F(JobsTest, NodesAreFoundByNameAndByTheJobTheyAreHeldFor) {
  NodeCache nodes(world_.time.loop(), world_.faulty);
  nodes.Start();
  Node node;
  node.hostname = "a.example.org";
  node.external_id = "i-1";
  NodeId first = world_.Run(world_.store.nodes.Create(node));
  node.hostname = "a";
  node.external_id = boost::json::object{{"id", "i-1"}};
  node.SetState(NodeState::kHold, {});
  node.hold_job = "unit";
  NodeId second = world_.Run(world_.store.nodes.Create(node));
  world_.Run(nodes.WaitSynced());
  world_.Run(nodes.CatchUp());
  EXPECT_THAT(nodes.Named("a.example.org"), ElementsAre(first));
  EXPECT_THAT(nodes.Named("a"), ElementsAre(first, second));
  EXPECT_THAT(nodes.Named("i-1"), ElementsAre(first));
  EXPECT_THAT(nodes.Named(""), IsEmpty());
  EXPECT_THAT(nodes.HeldByJob(), ElementsAre(Pair("unit", ElementsAre(second))));
  auto change = [](Node& record) {
    record.SetState(NodeState::kDeleting, {});
    record.hostname = "b";
    return Change::kWrite;
  };
  world_.Run(world_.store.nodes.UpdateUnlocked(second, change));
  world_.Run(nodes.CatchUp());
  EXPECT_THAT(nodes.HeldByJob(), IsEmpty());
  EXPECT_THAT(nodes.Named("a"), ElementsAre(first));
  EXPECT_THAT(nodes.Named("b"), ElementsAre(second));
  world_.Run(nodes.Stop());
}

class RunnersTest : public ::testing::Test {
 protected:
  ~RunnersTest() override { world_.Run(cache_.Stop()); }
  static RunnerRun Run(RunState state) {
    RunnerRun run;
    run.state = state;
    run.service = "octo";
    run.set = "small";
    return run;
  }
  void Sync() {
    cache_.Start();
    world_.Run(cache_.WaitSynced());
  }
  void CatchUp() { world_.Run(cache_.CatchUp()); }

  World world_;
  RunnerCache cache_{world_.time.loop(), world_.faulty};
  Runners& runners_ = world_.store.runners;
  const RunId kId{"0123abcd"};
  const RunnerSetKey kSet{"octo", "small"};
};

TEST_F(RunnersTest, TheCacheFollowsRunsAndSets) {
  Sync();
  world_.Run(runners_.WriteRun(kId, Run(RunState::kWanted)));
  RunnerSetRecord set;
  set.scale_set = 4;
  world_.Run(runners_.WriteSet(kSet, set));
  CatchUp();
  ASSERT_TRUE(cache_.runs().contains(kId));
  EXPECT_EQ(cache_.CountOf("octo"), 1);
  ASSERT_NE(cache_.FindSet(kSet), nullptr);
  EXPECT_EQ(cache_.FindSet(kSet)->scale_set, 4);
  world_.Run(runners_.WriteRun(kId, Run(RunState::kEnding)));
  CatchUp();
  EXPECT_EQ(cache_.CountOf("octo"), 0);
  world_.Run(runners_.DeleteRun(kId));
  world_.Run(runners_.DeleteRun(kId));
  world_.Run(runners_.DeleteSet(kSet));
  CatchUp();
  EXPECT_TRUE(cache_.runs().empty());
  EXPECT_TRUE(cache_.sets().empty());
}

TEST_F(RunnersTest, WhatCannotBeReadIsNotListed) {
  world_.Put("/nodepool/runners/runs/0123abcd", "{");
  world_.Put("/nodepool/runners/runs/other", "{}");
  Sync();
  EXPECT_TRUE(cache_.runs().empty());
  EXPECT_EQ(cache_.malformed_count(), 1);
}

TEST_F(RunnersTest, TheIdentityStays) {
  std::string identity = world_.Run(runners_.Identity());
  EXPECT_EQ(identity.size(), 6);
  EXPECT_EQ(world_.Run(runners_.Identity()), identity);
}

}  // namespace

}  // namespace nodepool::store
