#include "async/reconciler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/task_group.h"
#include "async/testing/virtual_time.h"
#include "base/error.h"

namespace nodepool {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class WakeLoopTest : public ::testing::Test {
 protected:
  void Start(WakeLoop::Pace pace) {
    auto evaluate = [this] {
      ++evaluations;
      if (fault) throw Error(Verdict::kFail, "no");
      return due;
    };
    wake_loop.emplace(time.loop(), "a thing", pace, evaluate, log::Logger("test.async"));
    group.Spawn("loop", wake_loop->Run());
    time.Advance(seconds(0));
  }
  void TearDown() override { time.Run(group.Stop()); }
  int EvaluationsDuring(Duration duration) {
    int before = evaluations;
    time.Advance(duration);
    return evaluations - before;
  }

  testing::VirtualTime time;
  TaskGroup group{time.loop(), log::Logger("test.async")};
  std::optional<WakeLoop> wake_loop;
  SteadyTime due = SteadyTime::max();
  bool fault = false;
  int evaluations = 0;
};

TEST_F(WakeLoopTest, EvaluatesAtFirstAndAfterEachChange) {
  Start({});
  EXPECT_EQ(evaluations, 1);
  EXPECT_EQ(EvaluationsDuring(std::chrono::hours(24)), 0) << "nothing changed";
  wake_loop->Wake();
  EXPECT_EQ(evaluations, 1) << "never inside Wake";
  EXPECT_EQ(EvaluationsDuring(seconds(0)), 1);
}

TEST_F(WakeLoopTest, ABurstOfChangesIsAnsweredOnce) {
  Start({.settle = milliseconds(10)});
  for (int i = 0; i < 5; ++i) {
    wake_loop->Wake();
    EXPECT_EQ(EvaluationsDuring(milliseconds(1)), 0);
  }
  EXPECT_EQ(EvaluationsDuring(seconds(1)), 1);
}

TEST_F(WakeLoopTest, EvaluatesAtTheTimeThatItChose) {
  due = time.loop().SteadyNow() + seconds(5);
  Start({});
  due = SteadyTime::max();
  EXPECT_EQ(EvaluationsDuring(milliseconds(4900)), 0);
  EXPECT_EQ(EvaluationsDuring(milliseconds(200)), 1);
}

TEST_F(WakeLoopTest, EvaluatesAtTheLatestAfterTheMaximumPause) {
  Start({.longest = seconds(60)});
  EXPECT_EQ(EvaluationsDuring(seconds(125)), 2);
}

TEST_F(WakeLoopTest, AFailedEvaluationIsLoggedAndTheNextChangeIsAnswered) {
  log::Capture capture;
  fault = true;
  Start({});
  EXPECT_EQ(capture.Count("Evaluating a change of a thing failed: no"), 1);
  fault = false;
  wake_loop->Wake();
  EXPECT_EQ(EvaluationsDuring(seconds(0)), 1);
}

class ReconcilerTest : public ::testing::Test {
 protected:
  using Works = Reconciler<std::string>;

  void TearDown() override { time.Run(works.Stop()); }
  std::optional<Works::Work> WorkFor(const std::string& key) {
    if (needs.empty()) return std::nullopt;
    return Works::Work{needs, Do(key, needs), after};
  }
  Task<> Do(std::string key, std::string_view what) {
    done.push_back(key + " " + std::string(what));
    if (lasts > Duration(0)) co_await time.loop().SleepFor(lasts);
    if (meanwhile) std::exchange(meanwhile, nullptr)();
    if (pause) works.Pause(key, *pause);
    if (!fault.empty()) throw Error(Verdict::kFail, fault);
    needs = "";
  }
  // What was begun during this time.
  std::vector<std::string> During(Duration duration) {
    done.clear();
    time.Advance(duration);
    return done;
  }

  testing::VirtualTime time;
  SeededRandom random{1};
  std::string_view needs = "repair";
  Duration after{0};
  Duration lasts = seconds(1);
  std::optional<Duration> pause;
  std::string fault;
  std::function<void()> meanwhile;  // called once, by the work
  std::vector<std::string> done;
  Works works{time.loop(),
              random,
              log::Logger("test.async"),
              {.failure = [](const std::string& key) { return key + " failed"; },
               .ids_of = [](const std::string&) { return log::Ids(); },
               .pauses = {seconds(2), seconds(60), 2.0, 0.0}},
              [this](const std::string& key) { return WorkFor(key); }};
};

TEST_F(ReconcilerTest, WorksOnAKeyOnceAtATimeAndOnOthersBeside) {
  works.Notice("a");
  works.Notice("a");
  works.Notice("b");
  EXPECT_THAT(During(milliseconds(500)), ElementsAre("a repair", "b repair"));
  EXPECT_TRUE(works.IsUnderWay("a"));
  EXPECT_THAT(During(seconds(5)), IsEmpty());
  EXPECT_FALSE(works.IsUnderWay("a"));
}

TEST_F(ReconcilerTest, LooksAgainAfterwardsAtWhatChangedMeanwhile) {
  works.Notice("a");
  time.Advance(milliseconds(500));
  works.Notice("a");
  time.Advance(milliseconds(400));
  EXPECT_THAT(During(seconds(5)), IsEmpty()) << "nothing is needed any more";
  needs = "repair";
  works.Notice("a");
  time.Advance(milliseconds(500));
  works.Notice("a");
  fault = "away";
  EXPECT_THAT(During(seconds(2)), IsEmpty()) << "but not before the pause of a failure is over";
  EXPECT_THAT(During(seconds(1)), ElementsAre("a repair"));
}

TEST_F(ReconcilerTest, RepeatsAfterGrowingPausesUntilItSucceeds) {
  fault = "away";
  works.Notice("a");
  EXPECT_THAT(During(milliseconds(2900)), SizeIs(1));
  EXPECT_THAT(During(milliseconds(4900)), SizeIs(1)) << "after 3 s";
  EXPECT_THAT(During(milliseconds(8900)), SizeIs(1)) << "after 5 s more";
  fault = "";
  time.Advance(seconds(60));
  EXPECT_THAT(During(seconds(300)), IsEmpty());
  needs = "repair";
  fault = "away";
  works.Notice("a");
  EXPECT_THAT(During(milliseconds(3100)), SizeIs(2)) << "the pauses begin anew";
}

TEST_F(ReconcilerTest, APauseConcernsOneKindOfWork) {
  fault = "away";
  works.Notice("a");
  time.Advance(milliseconds(1500));
  works.Notice("a");
  EXPECT_THAT(During(milliseconds(500)), IsEmpty());
  needs = "removal";
  works.Notice("a");
  EXPECT_THAT(During(milliseconds(100)), ElementsAre("a removal"));
}

TEST_F(ReconcilerTest, WorkMayWaitUntilItHasBeenNeededForSoLong) {
  after = seconds(10);
  works.Notice("a");
  time.Advance(seconds(9));
  works.Notice("a");
  EXPECT_THAT(During(milliseconds(900)), IsEmpty());
  EXPECT_THAT(During(milliseconds(200)), ElementsAre("a repair"));
  needs = "repair";
  works.Notice("a");
  needs = "";
  EXPECT_THAT(During(seconds(20)), IsEmpty()) << "it is needed no more";
}

TEST_F(ReconcilerTest, WorkMayEndAtOnce) {
  lasts = Duration(0);
  after = seconds(10);
  works.Notice("a");
  works.Notice("b");
  EXPECT_THAT(During(seconds(11)), ElementsAre("a repair"));
  EXPECT_FALSE(works.IsUnderWay("a"));
  needs = "repair";
  fault = "away";
  works.Notice("a");
  EXPECT_THAT(During(seconds(13)), ElementsAre("a repair", "a repair")) << "again after a pause of 2 s";
}

TEST_F(ReconcilerTest, WorkMayEndWhatAnotherKeyWaitsFor) {
  lasts = Duration(0);
  after = seconds(10);
  works.Notice("a");
  works.Notice("b");
  meanwhile = [this] { works.Do("b", {"visit", Do("b", "visit")}); };
  EXPECT_THAT(During(seconds(11)), ElementsAre("a repair", "b visit"));
}

TEST_F(ReconcilerTest, WorkCanAskToBeDoneAgain) {
  pause = seconds(5);
  works.Notice("a");
  time.Advance(milliseconds(1500));
  needs = "repair";
  works.Notice("a");
  EXPECT_THAT(During(seconds(4)), IsEmpty());
  EXPECT_THAT(During(seconds(1)), ElementsAre("a repair"));
  EXPECT_GE(works.NeededFor("a"), seconds(6));
}

TEST_F(ReconcilerTest, WhatIsCancelledIsForgotten) {
  works.Notice("a");
  time.Advance(milliseconds(500));
  works.CancelAll();
  EXPECT_THAT(During(seconds(60)), IsEmpty());
  works.Notice("a");
  EXPECT_THAT(During(seconds(1)), ElementsAre("a repair"));
}

TEST_F(ReconcilerTest, WorkOfTheCallerIsDoneUnlessOtherIsUnderWay) {
  needs = "";
  works.Do("a", {"visit", Do("a", "visit")});
  works.Do("a", {"visit", Do("a", "visit")});
  EXPECT_THAT(During(seconds(5)), ElementsAre("a visit"));
}

}  // namespace

}  // namespace nodepool
