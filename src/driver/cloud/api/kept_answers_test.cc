#include "driver/cloud/api/kept_answers.h"

#include <gtest/gtest.h>

#include "async/task_group.h"
#include "async/testing/virtual_time.h"

namespace nodepool::driver::cloud::api {
namespace {

using namespace std::chrono_literals;

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
