#include "async/log_throttle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace nodepool {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LogThrottleTest : public ::testing::Test {
 protected:
  int Admitted(int lines) {
    int admitted = 0;
    for (int i = 0; i < lines; ++i) admitted += throttle_->Admits() ? 1 : 0;
    return admitted;
  }
  void Advance(Duration duration) { clock_.AdvanceTo(clock_.SteadyNow() + duration); }

  ManualClock clock_;
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
