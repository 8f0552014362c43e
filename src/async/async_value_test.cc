#include "async/async_value.h"

#include <gtest/gtest.h>

#include "async/task_group.h"
#include "async/testing/virtual_time.h"
#include "base/error.h"

namespace nodepool {
namespace {

class AsyncValueTest : public ::testing::Test {
 protected:
  Task<int> Load() {
    int number = ++loads;
    co_await time.loop().SleepFor(std::chrono::seconds(1));
    if (fault) throw Error(Verdict::kRetry, "not now");
    co_return number;
  }
  Task<> GetInto(int& result) { result = co_await value.Get(); }

  testing::VirtualTime time;
  TaskGroup group{time.loop(), log::Logger("test.async")};
  AsyncValue<int> value{[this] { return Load(); }};
  int loads = 0;
  bool fault = false;
};

TEST_F(AsyncValueTest, IsLoadedOnceForAllWhoWait) {
  int first = 0, second = 0;
  EXPECT_EQ(value.Find(), std::nullopt);
  group.Spawn("first", GetInto(first));
  group.Spawn("second", GetInto(second));
  time.Run(group.Join());
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
  EXPECT_EQ(value.Find(), 1);
}

TEST_F(AsyncValueTest, AFailureIsNotKept) {
  fault = true;
  EXPECT_THROW(time.Run(value.Get()), Error);
  fault = false;
  EXPECT_EQ(time.Run(value.Get()), 2);
}

TEST_F(AsyncValueTest, WhatWasLoadedBeforeAClearIsNotKept) {
  int first = 0;
  group.Spawn("first", GetInto(first));
  time.Advance(std::chrono::milliseconds(500));
  value.Clear();
  time.Run(group.Join());
  EXPECT_EQ(first, 1);
  EXPECT_EQ(value.Find(), std::nullopt);
  EXPECT_EQ(time.Run(value.Get()), 2);
}

}  // namespace
}  // namespace nodepool
