#include "operate/providers.h"

#include <gtest/gtest.h>

#include "store/store_for_test.h"

namespace nodepool::operate {
namespace {

class OperateProvidersTest : public ::testing::Test {
 protected:
  void SetUp() override { config_.providers[ProviderName("cloud")] = nullptr; }

  store::World world_;
  driver::LoadedConfig config_;
};

// ACT-1
TEST_F(OperateProvidersTest, OnlyConfiguredProvidersArePaused) {
  Done paused =
      world_.Run(PauseProvider(world_.time.loop(), world_.store, config_, ProviderName("clod"), {}));
  ASSERT_FALSE(paused);
  EXPECT_EQ(paused.error().kind, Refusal::Kind::kNotFound);
  EXPECT_FALSE(world_.Exists("/nodepool"));
  EXPECT_TRUE(
      world_.Run(PauseProvider(world_.time.loop(), world_.store, config_, ProviderName("cloud"), {})));
  EXPECT_TRUE(world_.Exists("/nodepool/paused-providers/cloud"));
}

// ACT-2
TEST_F(OperateProvidersTest, TheSwitchOfARemovedProviderCanBeRemoved) {
  world_.Run(world_.store.provider_pauses.Pause(ProviderName("gone"), {}));
  EXPECT_TRUE(world_.Run(UnpauseProvider(world_.store, ProviderName("gone"))));
  for (const char* missing : {"gone", "cloud", ""}) {
    Done unpaused = world_.Run(UnpauseProvider(world_.store, ProviderName(missing)));
    ASSERT_FALSE(unpaused);
    EXPECT_EQ(unpaused.error().kind, Refusal::Kind::kNotFound);
  }
}

}  // namespace
}  // namespace nodepool::operate
