#include "driver/cloud/api/rate_limiter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "async/testing/virtual_time.h"

namespace nodepool::driver::cloud::api {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

class RateLimiterTest : public ::testing::Test {
 protected:
  // After how long each of some calls passes.
  std::vector<Duration> Pass(RateLimiter& limiter, int calls) {
    SteadyTime before = time.loop().SteadyNow();
    std::vector<Duration> passed;
    for (int i = 0; i < calls; ++i) {
      time.Run(limiter.WaitForTurn());
      passed.push_back(time.loop().SteadyNow() - before);
    }
    return passed;
  }
  testing::VirtualTime time;
};

TEST_F(RateLimiterTest, OneAtATime) {
  RateLimiter limiter(time.loop(), {2s});
  EXPECT_THAT(Pass(limiter, 3), ElementsAre(0s, 2s, 4s));
  time.Advance(1h);
  EXPECT_THAT(Pass(limiter, 2), ElementsAre(0s, 2s)) << "what was not used is not saved up";
}

TEST_F(RateLimiterTest, ABurstPassesAndTheBucketFillsUpAgain) {
  RateLimiter limiter(time.loop(), {1s, 3});
  EXPECT_THAT(Pass(limiter, 5), ElementsAre(0s, 0s, 0s, 1s, 2s));
  time.Advance(2s);
  EXPECT_THAT(Pass(limiter, 3), ElementsAre(0s, 0s, 1s));
}

}  // namespace
}  // namespace nodepool::driver::cloud::api
