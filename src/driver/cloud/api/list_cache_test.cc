#include "driver/cloud/api/list_cache.h"

#include <gtest/gtest.h>

#include <vector>

#include "async/task_group.h"
#include "async/testing/virtual_time.h"

namespace nodepool::driver::cloud::api {

namespace {

using namespace std::chrono_literals;

// What somebody who follows the pauses does for one machine that starts after `takes`.
struct Followed {
  int readings = 0;
  Duration late{};  // from the start to the reading that shows it
};
Followed Follow(UsualStart& usual, Duration takes) {
  Followed followed;
  Duration age{};
  while (true) {
    Duration pause = usual.PauseAt(age);
    age += pause;
    usual.Reading(pause);
    ++followed.readings;
    if (age >= takes) break;
  }
  followed.late = age - takes;
  usual.Started(age);
  return followed;
}

TEST(UsualStartTest, UntilSomeAreKnownItIsReadAtEachPause) {
  UsualStart usual(1s);
  EXPECT_EQ(usual.PauseAt(0s), 1s);
  usual.Started(20s);
  usual.Started(20s);
  EXPECT_EQ(usual.PauseAt(19s), 1s);
}

TEST(UsualStartTest, StartsThatAreAlikeAreSeenSoonAndWithFewerReadings) {
  UsualStart usual(1s);
  for (int i = 0; i < 20; ++i) Follow(usual, 20s + i % 5 * 100ms);
  for (int i = 0; i < 5; ++i) {
    Followed followed = Follow(usual, 20s + i * 100ms);
    EXPECT_LE(followed.late, 100ms);
    EXPECT_LE(followed.readings, 21);
  }
}

TEST(UsualStartTest, StartsThatDifferCostNoMoreReadingsThanPauses) {
  UsualStart usual(1s);
  int readings = 0, seconds = 0;
  for (int i = 0; i < 100; ++i) {
    int takes = 5 + i * 7 % 40;
    readings += Follow(usual, std::chrono::seconds(takes)).readings;
    seconds += takes;
  }
  EXPECT_LE(readings, seconds + 100);
}

TEST(UsualStartTest, ShortStartsCostNoMoreReadingsEither) {
  UsualStart usual(1s);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Follow(usual, 300ms).readings, 1);
  for (int i = 0; i < 20; ++i) usual.Started(300ms);
  EXPECT_EQ(usual.PauseAt(0s), 1s);
}

TEST(UsualStartTest, OneThatTakesLongerIsFollowedAsBefore) {
  UsualStart usual(1s);
  for (int i = 0; i < 5; ++i) usual.Started(10s);
  usual.Reading(1min);
  EXPECT_LT(usual.PauseAt(10s), 200ms);
  EXPECT_EQ(usual.PauseAt(11s), 1s);
}

TEST(UsualStartTest, AnEarlyFailureIsSeenAfterTwoPauses) {
  UsualStart usual(1s);
  for (int i = 0; i < 5; ++i) usual.Started(100s);
  EXPECT_EQ(usual.PauseAt(0s), 2s);
}

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

class KeptAnswersTest : public ::testing::Test {
 protected:
  Task<int> Ask(std::string) {
    ++asked;
    co_await time.loop().SleepFor(1s);
    if (fault) throw Error(*fault, "no answer");
    co_return asked;
  }
  int Get(const std::string& key = "debian") { return time.Run(answers.Get(key)); }

  testing::VirtualTime time;
  int asked = 0;
  std::optional<Verdict> fault;
  std::vector<std::string> old_ones;
  KeptAnswers<std::string, int> answers{time.loop(), [this](std::string key) { return Ask(std::move(key)); },
                                        [this](const std::string& key, const Failure& failure) {
                                          old_ones.push_back(key + ": " + failure.message());
                                        }};
};

TEST_F(KeptAnswersTest, AnAnswerIsUsedForFiveMinutes) {
  EXPECT_EQ(Get(), 1);
  time.Advance(4min);
  EXPECT_EQ(Get(), 1);
  EXPECT_EQ(Get("fedora"), 2);
  time.Advance(2min);
  EXPECT_EQ(Get(), 3);
}

TEST_F(KeptAnswersTest, ManyWaitForOneCall) {
  TaskGroup tasks(time.loop(), log::Logger("test"));
  auto get = [](KeptAnswers<std::string, int>& answers, int& sum) -> Task<> {
    int answer = co_await answers.Get("debian");
    sum += answer;
  };
  int sum = 0;
  for (int i = 0; i < 5; ++i) tasks.Spawn("get", get(answers, sum));
  time.Run(tasks.Join());
  EXPECT_EQ(sum, 5);
}

TEST_F(KeptAnswersTest, WhileTheCloudDoesNotAnswerTheLastOneIsUsedForAnHour) {
  EXPECT_EQ(Get(), 1);
  for (Verdict verdict : {Verdict::kRetry, Verdict::kRateLimited, Verdict::kTimedOut}) {
    fault = verdict;
    time.Advance(10min);
    EXPECT_EQ(Get(), 1);
  }
  EXPECT_EQ(old_ones, std::vector<std::string>(3, "debian: no answer"));
  time.Advance(31min);
  EXPECT_THROW(Get(), Error);
}

TEST_F(KeptAnswersTest, WhatTheCloudSaysOfItCounts) {
  EXPECT_EQ(Get(), 1);
  fault = Verdict::kInvalid;
  answers.Doubt();
  EXPECT_THROW(Get(), Error);
  fault.reset();
  EXPECT_EQ(Get(), 3);
}

}  // namespace

}  // namespace nodepool::driver::cloud::api
