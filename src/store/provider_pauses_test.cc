#include <gmock/gmock.h>

#include "store/cache/record_cache.h"
#include "store/store_for_test.h"

namespace nodepool::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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

}  // namespace
}  // namespace nodepool::store
