#include "daemon/runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "async/task_group.h"
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

constexpr std::size_t kMegabyte = 1 << 20;

// As a large answer of a cloud does: what is freed is surrounded by what stays.
std::vector<std::unique_ptr<std::string>> LeaveHoles() {
  std::vector<std::unique_ptr<std::string>> strings;
  for (int i = 0; i < 100'000; ++i) strings.push_back(std::make_unique<std::string>(2000, 'x'));
  for (std::size_t i = 0; i < strings.size(); ++i) {
    if (i % 100 != 0) strings[i].reset();
  }
  return strings;
}

Task<> AwaitLessUnused(Loop& loop, std::size_t bytes) {
  SteadyTime deadline = loop.SteadyNow() + std::chrono::seconds(30);
  while (UnusedMemory() >= bytes && loop.SteadyNow() < deadline)
    co_await loop.SleepFor(std::chrono::milliseconds(5));
}

TEST(MemoryTest, WhatIsUnusedGoesBackToTheSystem) {
  LimitArenas();
  std::size_t before = UnusedMemory();
  auto strings = LeaveHoles();
  if (::mallinfo2().uordblks == 0) GTEST_SKIP() << "a sanitizer's allocator";
  EXPECT_GT(UnusedMemory(), before + 150 * kMegabyte);
  Loop loop;
  BlockingPool pool(1);
  TaskGroup tasks(loop, log::Logger("test"));
  tasks.Spawn("return unused memory", ReturnUnusedMemory(loop, pool, std::chrono::milliseconds(10)));
  RunToEnd(loop, AwaitLessUnused(loop, before + 30 * kMegabyte));
  EXPECT_LT(UnusedMemory(), before + 30 * kMegabyte);
  RunToEnd(loop, tasks.Stop());
}

}  // namespace

}  // namespace nodepool::daemon
