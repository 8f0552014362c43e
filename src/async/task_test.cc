#include "async/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/loop.h"
#include "async/task_group.h"
#include "async/testing/run_ready.h"
#include "base/clock.h"
#include "base/scope_exit.h"
#include "base/testing/manual_clock.h"

namespace nodepool {

namespace {

using ::testing::ElementsAre;
using Steps = std::vector<std::string>;

// An error with more data than its verdict and message.
struct CloudError : Error {
  CloudError() : Error(Verdict::kQuota, "full") {}
  int status = 413;
};

Task<> Say(Steps& steps, std::string step) {
  steps.push_back(std::move(step));
  co_return;
}

Task<> WaitAndSay(Event& event, Steps& steps, std::string step) {
  co_await event.Wait();
  steps.push_back(std::move(step));
}

Task<int> Seven() { co_return 7; }

template <class Exception>
Task<int> ThrowAs(Exception exception) {
  throw exception;
  co_return 0;
}

class CleanupTest : public ::testing::Test {
 protected:
  // Runs `task` until it waits for something or has ended.
  void Start(Task<> task) {
    group.Spawn("work", std::move(task));
    testing::RunReady(loop);
  }
  void Cancel() {
    group.CancelAll();
    testing::RunReady(loop);
  }
  void Set(Event& event) {
    event.Set();
    testing::RunReady(loop);
  }

  testing::ManualClock clock;
  Loop loop{clock};
  TaskGroup group{loop, log::Logger("test.async")};
  Event never, released;
  Steps steps;
};

TEST_F(CleanupTest, AnAttemptReturnsTheResult) {
  Outcome<int> outcome = RunToEnd(loop, Attempt(Seven()));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(*outcome, 7);
  EXPECT_FALSE(FailedWith(outcome, Verdict::kQuota));
}

TEST_F(CleanupTest, AnAttemptSaysWhyItFailed) {
  Outcome<int> outcome = RunToEnd(loop, Attempt(ThrowAs(CloudError())));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().verdict(), Verdict::kQuota);
  EXPECT_EQ(outcome.error().message(), "full");
  EXPECT_TRUE(FailedWith(outcome, Verdict::kRetry, Verdict::kQuota));
  EXPECT_FALSE(FailedWith(outcome, Verdict::kRetry));
  try {
    outcome.error().Rethrow();
  } catch (const CloudError& error) {
    EXPECT_EQ(error.status, 413) << "the exception keeps its type";
  }
}

TEST_F(CleanupTest, AnAttemptInACancelledTaskDoesNotGoOn) {
  auto run = [](Event& never, Steps& steps) -> Task<> {
    co_await Attempt(never.Wait());
    steps.push_back("went on");
  };
  Start(run(never, steps));
  Cancel();
  EXPECT_EQ(group.size(), 0u);
  EXPECT_THAT(steps, ElementsAre());
}

TEST_F(CleanupTest, CleanupFollowsTheWorkAndKeepsItsResult) {
  auto cleanup = [&] { return Say(steps, "clean"); };
  EXPECT_EQ(RunToEnd(loop, WithCleanup(Seven(), cleanup)), 7);
  EXPECT_THAT(steps, ElementsAre("clean"));
}

TEST_F(CleanupTest, CleanupFollowsAFailureAndKeepsItsType) {
  auto cleanup = [&] { return Say(steps, "clean"); };
  EXPECT_THROW(RunToEnd(loop, WithCleanup(ThrowAs(CloudError()), cleanup)), CloudError);
  EXPECT_THAT(steps, ElementsAre("clean"));
}

TEST_F(CleanupTest, TheFailureOfTheWorkCountsMoreThanThatOfTheCleanup) {
  auto fail = []() -> Task<> { throw Error(Verdict::kInvalid, "cleaning failed"); };
  EXPECT_THROW(RunToEnd(loop, WithCleanup(ThrowAs(CloudError()), fail)), CloudError);
  try {
    RunToEnd(loop, WithCleanup(Seven(), fail));
    FAIL() << "the error of the clean-up is lost";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "cleaning failed");
  }
}

// Cancelled during the work, during the clean-up, and twice.
TEST_F(CleanupTest, CleanupRunsToItsEndWhenTheTaskIsCancelled) {
  auto run = [](Event& never, Event& released, Steps& steps) -> Task<> {
    auto cleanup = [&] { return WaitAndSay(released, steps, "clean"); };
    co_await WithCleanup(never.Wait(), cleanup);
    steps.push_back("went on");
  };
  Start(run(never, released, steps));
  Cancel();
  EXPECT_EQ(group.size(), 1u) << "it cleans up";
  Cancel();
  EXPECT_EQ(group.size(), 1u) << "which nothing interrupts";
  Set(released);
  EXPECT_EQ(group.size(), 0u);
  EXPECT_THAT(steps, ElementsAre("clean"));
}

TEST_F(CleanupTest, ATaskCancelledDuringItsCleanupStopsAfterIt) {
  auto run = [](Event& never, Event& released, Steps& steps) -> Task<> {
    auto cleanup = [&] { return WaitAndSay(released, steps, "clean"); };
    co_await WithCleanup(Seven(), cleanup);
    co_await never.Wait();
    steps.push_back("went on");
  };
  Start(run(never, released, steps));
  Cancel();
  Set(released);
  EXPECT_EQ(group.size(), 0u);
  EXPECT_THAT(steps, ElementsAre("clean"));
}

TEST_F(CleanupTest, CleanupsNest) {
  auto run = [](Event& never, Event& released, Steps& steps) -> Task<> {
    auto inner = [&] { return WaitAndSay(released, steps, "inner"); };
    auto outer = [&] { return WithCleanup(Say(steps, "outer"), [&] { return Say(steps, "last"); }); };
    co_await WithCleanup(WithCleanup(never.Wait(), inner), outer);
  };
  Start(run(never, released, steps));
  Cancel();
  Set(released);
  EXPECT_EQ(group.size(), 0u);
  EXPECT_THAT(steps, ElementsAre("inner", "outer", "last"));
}

TEST_F(CleanupTest, OnFailureRunsOnlyAfterAFailure) {
  auto cleanup = [&](const Failure& failure) { return Say(steps, failure.message()); };
  EXPECT_EQ(RunToEnd(loop, OnFailure(Seven(), cleanup)), 7);
  EXPECT_THAT(steps, ElementsAre());
  EXPECT_THROW(RunToEnd(loop, OnFailure(ThrowAs(CloudError()), cleanup)), CloudError);
  EXPECT_THAT(steps, ElementsAre("full"));
}

TEST_F(CleanupTest, CancellationIsAFailure) {
  auto run = [](Event& never, Steps& steps) -> Task<> {
    auto cleanup = [&](const Failure& failure) {
      return Say(steps, failure.verdict() == Verdict::kCancelled ? "stopped" : "failed");
    };
    co_await OnFailure(never.Wait(), cleanup);
  };
  Start(run(never, steps));
  Cancel();
  EXPECT_EQ(group.size(), 0u);
  EXPECT_THAT(steps, ElementsAre("stopped"));
}

TEST_F(CleanupTest, ABracketReleasesWhatItAcquired) {
  auto use = [](int& seven) -> Task<std::string> { co_return std::to_string(seven); };
  auto release = [&](int& seven) { return Say(steps, "release " + std::to_string(seven)); };
  EXPECT_EQ(RunToEnd(loop, Bracket(Seven(), use, release)), "7");
  EXPECT_THAT(steps, ElementsAre("release 7"));
  EXPECT_THROW(RunToEnd(loop, Bracket(ThrowAs(CloudError()), use, release)), CloudError);
  EXPECT_THAT(steps, ElementsAre("release 7")) << "nothing was acquired";
}

// The worst moment: it is acquired, and the caller does not know that yet.
TEST_F(CleanupTest, ATaskCancelledAsItAcquiresReleases) {
  auto run = [](Event& acquired, Steps& steps) -> Task<> {
    auto acquire = [](Event& event) -> Task<int> {
      co_await event.Wait();
      co_return 7;
    };
    auto use = [&](int&) { return Say(steps, "use"); };
    auto release = [&](int&) { return Say(steps, "release"); };
    co_await Bracket(acquire(acquired), use, release);
  };
  Start(run(released, steps));
  released.Set();
  Cancel();
  EXPECT_EQ(group.size(), 0u);
  EXPECT_THAT(steps, ElementsAre("release"));
}

TEST(ScopeExitTest, RunsWhenTheScopeEnds) {
  int runs = 0;
  try {
    ScopeExit count([&] { ++runs; });
    EXPECT_EQ(runs, 0);
    throw Error(Verdict::kFail, "out");
  } catch (const Error&) {
  }
  EXPECT_EQ(runs, 1);
}

}  // namespace

}  // namespace nodepool
