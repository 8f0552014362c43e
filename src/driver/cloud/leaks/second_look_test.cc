#include "driver/cloud/leaks/second_look.h"

#include <gtest/gtest.h>

#include "async/task_group.h"
#include "async/testing/virtual_time.h"

namespace nodepool::driver::cloud {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class SecondLookTest : public ::testing::Test {
 protected:
  Task<> Look() {
    int seen = ++begun_;
    co_await time_.loop().SleepFor(length_);
    if (fails_) throw Error(Verdict::kRetry, "the cloud is away");
    seen_ = seen;
  }
  Task<> Ask() {
    int before = begun_;
    Outcome<> looked = co_await Attempt(look_.Take());
    if (!looked) ++failures_;
    if (looked && seen_ <= before) ++too_old_;
    ++answers_;
  }
  ~SecondLookTest() override { time_.Run(group_.Stop()); }

  testing::VirtualTime time_;
  TaskGroup group_{time_.loop(), log::Logger("test")};
  bool fails_ = false;
  Duration length_ = seconds(1);  // of a look
  int begun_ = 0;
  int seen_ = 0;
  int answers_ = 0;
  int failures_ = 0;
  int too_old_ = 0;
  SecondLook look_{time_.loop(), [this] { return Look(); }};
};

TEST_F(SecondLookTest, ManyShareALookThatBeganAfterTheyAsked) {
  for (int i = 0; i < 100; ++i) {
    group_.Spawn("ask", Ask());
    time_.Advance(milliseconds(20));
  }
  time_.Advance(seconds(3));
  EXPECT_EQ(answers_, 100);
  EXPECT_EQ(too_old_, 0);
  EXPECT_LE(begun_, 4);
}

TEST_F(SecondLookTest, HoweverOftenItIsAskedALookBeginsOnceASecond) {
  for (int i = 0; i < 20; ++i) {
    group_.Spawn("ask", Ask());
    time_.Advance(milliseconds(1500));
  }
  EXPECT_EQ(answers_, 20);
  EXPECT_EQ(begun_, 20);
  begun_ = seen_ = 0;
  length_ = milliseconds(1);
  for (int i = 0; i < 100; ++i) {
    group_.Spawn("ask", Ask());
    time_.Advance(milliseconds(50));
  }
  EXPECT_LE(begun_, 6);
}

TEST_F(SecondLookTest, AFailureIsThatOfAllWhoShareIt) {
  fails_ = true;
  for (int i = 0; i < 10; ++i) group_.Spawn("ask", Ask());
  time_.Advance(seconds(3));
  EXPECT_EQ(failures_, 10);
  EXPECT_LE(begun_, 2);
}

TEST_F(SecondLookTest, AnotherGoesOnWhereTheFirstIsCancelled) {
  TaskGroup cancelled(time_.loop(), log::Logger("test"));
  cancelled.Spawn("ask", Ask());
  time_.Advance(milliseconds(100));
  group_.Spawn("ask", Ask());
  time_.Run(cancelled.Stop());
  time_.Advance(seconds(3));
  EXPECT_EQ(answers_, 1);
  EXPECT_EQ(failures_, 0);
  EXPECT_EQ(too_old_, 0);
}

}  // namespace
}  // namespace nodepool::driver::cloud
