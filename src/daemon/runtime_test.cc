#include "daemon/runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "async/testing/virtual_time.h"
#include "daemon/program.h"

namespace nodepool::daemon {

namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ClockWatchTest : public ::testing::Test {
 protected:
  // Since the last call.
  std::vector<std::string> Said() {
    time_.Advance(minutes(1));
    std::vector<std::string> texts;
    for (; said_ < log_.records().size(); ++said_) texts.push_back(log_.records()[said_].text);
    return texts;
  }

  testing::VirtualTime time_;
  log::Capture log_;
  std::size_t said_ = 0;
  ClockWatch watch_{time_.loop()};
};

TEST_F(ClockWatchTest, EachJumpIsSaidOnce) {
  time_.clock().ShiftWallClock(seconds(3600));
  EXPECT_THAT(Said(), ElementsAre(HasSubstr("was set forward by 3600 s")));
  time_.clock().ShiftWallClock(seconds(-5));
  EXPECT_THAT(Said(), ElementsAre(HasSubstr("was set back by 5 s")));
  EXPECT_THAT(Said(), IsEmpty());
}

TEST_F(ClockWatchTest, SlowCorrectionsAreNotSaid) {
  for (int i = 0; i < 100; ++i) {
    time_.clock().ShiftWallClock(milliseconds(100));
    time_.Advance(seconds(1));
  }
  EXPECT_THAT(Said(), IsEmpty());
}

}  // namespace

}  // namespace nodepool::daemon
