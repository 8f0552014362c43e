#include <gmock/gmock.h>

#include "store/cache/record_cache.h"
#include "store/store_for_test.h"

namespace nodepool::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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

}  // namespace
}  // namespace nodepool::store
