#include "async/wake_loop.h"

#include <gtest/gtest.h>

#include "async/task_group.h"
#include "async/testing/virtual_time.h"
#include "base/error.h"

namespace nodepool {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

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

TEST_F(WakeLoopTest, EvaluatesWhenTheTimeHasComeThatItChose) {
  due = time.loop().SteadyNow() + seconds(5);
  Start({});
  due = SteadyTime::max();
  EXPECT_EQ(EvaluationsDuring(milliseconds(4900)), 0);
  EXPECT_EQ(EvaluationsDuring(milliseconds(200)), 1);
}

TEST_F(WakeLoopTest, EvaluatesAtTheLatestAfterTheLongestPause) {
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

}  // namespace
}  // namespace nodepool
