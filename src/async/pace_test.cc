#include "async/pace.h"

#include <gtest/gtest.h>

#include <boost/asio/post.hpp>

#include "async/testing/virtual_time.h"

namespace nodepool {
namespace {

using std::chrono::milliseconds;

class PaceTest : public ::testing::Test {
 protected:
  testing::VirtualTime time_;
  Pace pace_{time_.loop(), Stretch{milliseconds(5), 1000}};
};

TEST_F(PaceTest, APauseIsDueAfterAStretch) {
  EXPECT_FALSE(pace_.is_due(1000));
  time_.Advance(milliseconds(5));
  EXPECT_TRUE(pace_.is_due(1000));
  EXPECT_TRUE(pace_.is_due(1000)) << "until it is made";
  time_.Run(pace_.Pause());
  EXPECT_FALSE(pace_.is_due(1000));
}

TEST_F(PaceTest, TheClockIsReadOnceForSomeWork) {
  time_.Advance(milliseconds(5));
  int steps = 1;
  while (!pace_.is_due(100)) ++steps;
  EXPECT_EQ(steps, 7) << "a step of 100 bytes counts as 164";
  while (!pace_.is_due()) ++steps;
  EXPECT_EQ(steps, 7 + 15) << "one without bytes as 64";
}

TEST_F(PaceTest, OthersRunDuringAPause) {
  bool has_run = false;
  boost::asio::post(time_.loop().context(), [&] { has_run = true; });
  time_.Run(pace_.Pause());
  EXPECT_TRUE(has_run);
}

}  // namespace
}  // namespace nodepool
