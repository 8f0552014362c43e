#include "async/backoff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <optional>
#include <vector>

#include "async/testing/virtual_time.h"
#include "base/testing/manual_clock.h"

namespace nodepool {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

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

class LogThrottleTest : public ::testing::Test {
 protected:
  int Admitted(int lines) {
    int admitted = 0;
    for (int i = 0; i < lines; ++i) admitted += throttle_->Admits() ? 1 : 0;
    return admitted;
  }
  void Advance(Duration duration) { clock_.AdvanceTo(clock_.SteadyNow() + duration); }

  testing::ManualClock clock_;
  Loop loop_{clock_};
  std::vector<std::uint64_t> summaries_;
  std::optional<LogThrottle> throttle_{
      std::in_place, loop_, [this](std::uint64_t more) { summaries_.push_back(more); }, 3, seconds(60)};
};

TEST_F(LogThrottleTest, AdmitsTheFirstLinesOfAPeriodAndCountsTheOthers) {
  EXPECT_EQ(Admitted(2), 2);
  Advance(seconds(59));
  EXPECT_EQ(Admitted(5), 1);
  EXPECT_THAT(summaries_, IsEmpty());
  Advance(seconds(1));
  EXPECT_THAT(summaries_, ElementsAre(4));
  EXPECT_EQ(Admitted(4), 3);
  Advance(seconds(60));
  EXPECT_THAT(summaries_, ElementsAre(4, 1));
}

TEST_F(LogThrottleTest, SaysNothingWhereNothingWasLeftOut) {
  EXPECT_EQ(Admitted(3), 3);
  Advance(seconds(600));
  EXPECT_THAT(summaries_, IsEmpty());
}

TEST_F(LogThrottleTest, SummarizesAtItsEnd) {
  EXPECT_EQ(Admitted(5), 3);
  throttle_.reset();
  EXPECT_THAT(summaries_, ElementsAre(2));
}

}  // namespace

}  // namespace nodepool
