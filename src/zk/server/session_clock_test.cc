#include "zk/server/session_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nodepool::zk::server {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A process that can be stopped: time goes on, timers run late.
class StoppableClock : public ManualClock {
 public:
  SteadyTime SteadyNow() const override { return ManualClock::SteadyNow() + stopped_; }
  TimerId CallAt(SteadyTime when, std::move_only_function<void()> callback) override {
    return ManualClock::CallAt(when - stopped_, std::move(callback));
  }
  void Run(Duration duration) { AdvanceTo(ManualClock::SteadyNow() + duration); }
  void Stop(Duration duration) { stopped_ += duration; }

 private:
  Duration stopped_{0};
};

class SessionClockTest : public ::testing::Test {
 protected:
  StoppableClock clock_;
  Loop loop_{clock_};
  std::vector<std::int64_t> expired_;
  SessionClock sessions_{loop_, [this](std::int64_t session) { expired_.push_back(session); }};
};

TEST_F(SessionClockTest, ExpiresOneTimeoutAfterTheLastMessage) {
  sessions_.Start(1, seconds(4));
  sessions_.Start(2, seconds(10));
  sessions_.Start(3, seconds(1));
  sessions_.Stop(3);
  clock_.Run(seconds(3));
  sessions_.Heard(1);
  clock_.Run(std::chrono::milliseconds(3999));
  EXPECT_THAT(expired_, IsEmpty());
  clock_.Run(std::chrono::milliseconds(1));
  EXPECT_THAT(expired_, ElementsAre(1));
  clock_.Run(seconds(3));
  EXPECT_THAT(expired_, ElementsAre(1, 2));
}

TEST_F(SessionClockTest, AfterASuspensionEachSessionHasItsTimeoutAnew) {
  sessions_.Start(1, seconds(10));
  sessions_.Start(2, seconds(10));
  clock_.Stop(minutes(10));
  clock_.Run(seconds(10));
  EXPECT_THAT(expired_, IsEmpty());
  clock_.Run(seconds(9));
  sessions_.Heard(2);
  clock_.Run(seconds(2));
  EXPECT_THAT(expired_, ElementsAre(1));
}

}  // namespace
}  // namespace nodepool::zk::server
