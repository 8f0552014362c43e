#include "store/runners.h"

#include <gtest/gtest.h>

#include "store/cache/runner_cache.h"
#include "store/store_for_test.h"

namespace nodepool::store {
namespace {

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
