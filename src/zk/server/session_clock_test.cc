#include "zk/server/session_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/testing/virtual_time.h"

namespace nodepool::zk::server {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SessionClockTest : public ::testing::Test {
 protected:
  // As a process that is stopped: no timer fires meanwhile.
  void Suspend(Duration duration) {
    time_.clock().AdvanceTo(time_.clock().SteadyNow() + duration);
    time_.loop().RunReady();
  }

  testing::VirtualTime time_;
  std::vector<std::int64_t> expired_;
  SessionClock clock_{time_.loop(), [this](std::int64_t session) { expired_.push_back(session); }};
};

TEST_F(SessionClockTest, ASilentSessionExpiresOneTimeoutAfterItsLastMessage) {
  clock_.Start(1, seconds(10));
  clock_.Start(2, seconds(10));
  clock_.Start(3, seconds(1));
  clock_.Stop(3);
  time_.Advance(seconds(6));
  clock_.Heard(2);
  time_.Advance(seconds(6));
  EXPECT_THAT(expired_, ElementsAre(1));
  time_.Advance(seconds(6));
  EXPECT_THAT(expired_, ElementsAre(1, 2));
}

TEST_F(SessionClockTest, AfterASuspensionEachSessionHasItsTimeoutAnew) {
  clock_.Start(1, seconds(10));
  clock_.Start(2, seconds(10));
  Suspend(minutes(10));
  EXPECT_THAT(expired_, IsEmpty());
  clock_.Heard(2);
  time_.Advance(seconds(9));
  clock_.Heard(2);
  time_.Advance(seconds(2));
  EXPECT_THAT(expired_, ElementsAre(1));
}

}  // namespace
}  // namespace nodepool::zk::server
