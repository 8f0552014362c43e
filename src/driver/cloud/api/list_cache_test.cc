#include "driver/cloud/api/list_cache.h"

#include <gtest/gtest.h>

#include <vector>

#include "async/testing/virtual_time.h"

namespace nodepool::driver::cloud::api {
namespace {

using namespace std::chrono_literals;

class ListCacheTest : public ::testing::Test {
 protected:
  using Cache = ListCache<std::vector<int>>;

  Task<std::vector<int>> Read() {
    ++reads;
    co_await time.loop().SleepFor(takes);
    if (failures > 0) {
      --failures;
      throw Error(Verdict::kRetry, "no answer");
    }
    co_return std::vector<int>(reads, 7);
  }
  void TearDown() override { time.Run(tasks.Stop()); }

  testing::VirtualTime time;
  SeededRandom random{1};
  TaskGroup tasks{time.loop(), log::Logger("test")};
  int reads = 0;
  int failures = 0;
  Duration takes = 100ms;
  Cache cache{tasks, random, log::Logger("test"), "things", [this] { return Read(); }};
};

Task<> WaitForLength(ListCache<std::vector<int>>& cache, std::size_t length, int& done) {
  auto is_long = [length](const std::vector<int>& list) { return list.size() >= length; };
  co_await cache.Until(is_long);
  ++done;
}

TEST_F(ListCacheTest, OneListForAllWaitingTasks) {
  int done = 0;
  for (std::size_t length : {3, 3, 2}) tasks.Spawn("wait", WaitForLength(cache, length, done));
  time.Advance(1min);
  EXPECT_EQ(done, 3);
  EXPECT_EQ(reads, 3) << "not read when no task waits any more";
}

TEST_F(ListCacheTest, AYoungListIsShared) {
  time.Run(cache.NotOlderThan(5s));
  time.Run(cache.NotOlderThan(5s));
  EXPECT_EQ(reads, 1);
  time.Advance(6s);
  time.Run(cache.NotOlderThan(5s));
  EXPECT_EQ(reads, 2);
}

TEST_F(ListCacheTest, AListThatBeganBeforeDoesNotCount) {
  int done = 0;
  tasks.Spawn("wait", WaitForLength(cache, 1, done));
  time.Advance(50ms);
  auto listing = time.Run(cache.After(time.loop().SteadyNow()));
  EXPECT_EQ(listing.items->size(), 2u);
}

// D-93
TEST_F(ListCacheTest, AFailedReadIsTriedAgain) {
  failures = 3;
  log::Capture log;
  auto listing = time.Run(cache.NotOlderThan(0s));
  EXPECT_EQ(listing.items->size(), 4u);
  EXPECT_EQ(log.Count("could not be read; it is tried again: no answer"), 1) << "once for the same cause";
}

TEST_F(ListCacheTest, ThePausesFollowTheTimeOfReading) {
  takes = 3s;
  SteadyTime before = time.loop().SteadyNow();
  int done = 0;
  tasks.Spawn("wait", WaitForLength(cache, 3, done));
  EXPECT_TRUE(time.RunUntil([&] { return done == 1; }));
  EXPECT_EQ(time.loop().SteadyNow() - before, 15s);
}

// A machine that starts so long after its creation.
Task<> FollowStart(Loop& loop, ListCache<std::vector<int>>& cache, Duration takes, Duration& late) {
  SteadyTime started = loop.SteadyNow() + takes;
  auto has_started = [&loop, started](const std::vector<int>&) { return loop.SteadyNow() >= started; };
  co_await cache.UntilStarted(has_started);
  late = loop.SteadyNow() - started;
}

TEST_F(ListCacheTest, AMachineThatStartsAsOthersDidIsSeenAtOnce) {
  takes = 10ms;
  Duration late{};
  for (int i = 0; i < 4; ++i) time.Run(FollowStart(time.loop(), cache, 20s, late));
  int before = reads;
  time.Run(FollowStart(time.loop(), cache, 20s, late));
  EXPECT_LT(late, 150ms);
  EXPECT_LE(reads - before, 20) << "with no more readings than one a second";
}

TEST_F(ListCacheTest, OneWhoWaitsForSomethingElseDoesNotWaitLongerBesideAStart) {
  takes = 10ms;
  Duration late{};
  for (int i = 0; i < 4; ++i) time.Run(FollowStart(time.loop(), cache, 1min, late));
  tasks.Spawn("start", FollowStart(time.loop(), cache, 1min, late));
  time.Advance(5s);
  for (int i = 0; i < 5; ++i) {
    SteadyTime before = time.loop().SteadyNow();
    time.Run(cache.Fresh());
    EXPECT_LE(time.loop().SteadyNow() - before, 1050ms);
    time.Advance(700ms);
  }
}

TEST_F(ListCacheTest, WhatThePredicateThrowsEndsTheWait) {
  auto fails = [](const std::vector<int>&) -> bool { throw Error(Verdict::kFail, "it vanished"); };
  EXPECT_THROW(time.Run(cache.Until(fails)), Error);
}

TEST_F(ListCacheTest, StoppingEndsTheWaiting) {
  int done = 0;
  TaskGroup waiting(time.loop(), log::Logger("test"));
  waiting.Spawn("wait", WaitForLength(cache, 100, done));
  time.Advance(3s);
  time.Run(tasks.Stop());
  time.Run(waiting.Join());
  EXPECT_EQ(done, 0);
}

}  // namespace
}  // namespace nodepool::driver::cloud::api
