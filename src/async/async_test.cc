#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "async/backoff.h"
#include "async/blocking_pool.h"
#include "async/deadline.h"
#include "async/event.h"
#include "async/loop.h"
#include "async/task_group.h"
#include "async/testing/run_ready.h"
#include "async/testing/virtual_time.h"
#include "base/error.h"
#include "base/scope_exit.h"
#include "base/testing/manual_clock.h"

namespace nodepool {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class VirtualTimeTest : public ::testing::Test {
 protected:
  // Runs everything up to `duration` from now, timer by timer.
  void Advance(Duration duration) {
    SteadyTime end = clock.SteadyNow() + duration;
    testing::RunReady(loop);
    while (clock.has_timers() && clock.next_timer() <= end) {
      clock.AdvanceTo(clock.next_timer());
      testing::RunReady(loop);
    }
    clock.AdvanceTo(end);
    testing::RunReady(loop);
  }

  testing::ManualClock clock;
  Loop loop{clock};
  TaskGroup group{loop, log::Logger("test.async")};
};

Task<> SleepThenSet(Loop& loop, Duration duration, bool& flag) {
  co_await loop.SleepFor(duration);
  flag = true;
}

Task<> WaitThenCount(Event& event, int& count) {
  co_await event.Wait();
  ++count;
}

Task<int> SleepThenReturn(Loop& loop, Duration duration, int value) {
  co_await loop.SleepFor(duration);
  co_return value;
}

Task<> Throw(Error error) {
  throw error;
  co_return;
}

TEST_F(VirtualTimeTest, SleepTakesVirtualTimeOnly) {
  bool woke = false;
  group.Spawn("sleep", SleepThenSet(loop, std::chrono::hours(24), woke));
  Advance(std::chrono::hours(23));
  EXPECT_FALSE(woke);
  Advance(std::chrono::hours(1));
  EXPECT_TRUE(woke);
  EXPECT_EQ(group.size(), 0u);
}

TEST_F(VirtualTimeTest, EventWakesAllAndStaysSet) {
  Event event;
  int count = 0;
  group.Spawn("a", WaitThenCount(event, count));
  group.Spawn("b", WaitThenCount(event, count));
  testing::RunReady(loop);
  EXPECT_EQ(count, 0);
  event.Set();
  EXPECT_EQ(count, 0) << "waiters run later, never inside Set";
  testing::RunReady(loop);
  EXPECT_EQ(count, 2);
  group.Spawn("c", WaitThenCount(event, count));
  testing::RunReady(loop);
  EXPECT_EQ(count, 3);
}

TEST_F(VirtualTimeTest, StopCancelsAndJoins) {
  Event never;
  int count = 0;
  bool woke = false;
  group.Spawn("wait", WaitThenCount(never, count));
  group.Spawn("sleep", SleepThenSet(loop, seconds(5), woke));
  testing::RunReady(loop);
  EXPECT_EQ(loop.tasks().tasks().size(), 2u);
  RunToEnd(loop, group.Stop());
  EXPECT_EQ(group.size(), 0u);
  EXPECT_TRUE(loop.tasks().tasks().empty());
  EXPECT_FALSE(woke);
  EXPECT_FALSE(clock.has_timers()) << "a cancelled sleep leaves no timer behind";
  group.Spawn("late", SleepThenSet(loop, seconds(0), woke));
  EXPECT_EQ(group.size(), 0u);
}

TEST_F(VirtualTimeTest, CancelOneLeavesTheOther) {
  Event event;
  int count = 0;
  auto first = group.Spawn("first", WaitThenCount(event, count));
  group.Spawn("second", WaitThenCount(event, count));
  testing::RunReady(loop);
  group.Cancel(first);
  testing::RunReady(loop);
  EXPECT_EQ(group.size(), 1u);
  event.Set();
  testing::RunReady(loop);
  EXPECT_EQ(count, 1);
}

TEST_F(VirtualTimeTest, NotificationAndCancellationInTheSameTurn) {
  Event event;
  int count = 0;
  auto id = group.Spawn("wait", WaitThenCount(event, count));
  testing::RunReady(loop);
  event.Set();
  group.Cancel(id);
  testing::RunReady(loop);
  EXPECT_EQ(group.size(), 0u);
}

TEST_F(VirtualTimeTest, DestroyedWaitListAbortsItsWaiters) {
  int count = 0;
  auto event = std::make_unique<Event>();
  group.Spawn("wait", WaitThenCount(*event, count));
  testing::RunReady(loop);
  event.reset();
  testing::RunReady(loop);
  EXPECT_EQ(group.size(), 0u);
  EXPECT_EQ(count, 0);
}

TEST_F(VirtualTimeTest, FailedTaskIsLoggedWithItsNameAndIds) {
  log::Capture capture;
  group.Spawn("delete node", {"", "", "0000000042"}, Throw(Error(Verdict::kFail, "cloud said no")));
  group.Spawn("quiet", Throw(Error(Verdict::kCancelled, "stop")));
  testing::RunReady(loop);
  EXPECT_EQ(capture.Count("[node: 0000000042] delete node failed: cloud said no"), 1);
  EXPECT_EQ(capture.records().size(), 1u);
}

TEST_F(VirtualTimeTest, DeadlineReturnsResultInTime) {
  std::optional<int> result;
  auto run = [](Loop& l, std::optional<int>& r) -> Task<> {
    r = co_await WithDeadline(l, l.SteadyNow() + seconds(10), "work", SleepThenReturn(l, seconds(5), 7));
  };
  group.Spawn("deadline", run(loop, result));
  Advance(seconds(5));
  EXPECT_EQ(result, 7);
  EXPECT_FALSE(clock.has_timers());
}

TEST_F(VirtualTimeTest, DeadlineCutsOffAndSaysWhat) {
  log::Capture capture;
  auto run = [](Loop& l) -> Task<> {
    co_await WithDeadline(l, l.SteadyNow() + seconds(10), "boot of np1", SleepThenReturn(l, seconds(50), 7));
  };
  group.Spawn("deadline", run(loop));
  Advance(seconds(10));
  EXPECT_EQ(group.size(), 0u);
  EXPECT_EQ(capture.Count("boot of np1 timed out"), 1);
  EXPECT_FALSE(clock.has_timers());
}

Task<> RecordWhetherItEnds(Loop& loop, Duration limit, Task<> task, std::optional<bool>& has_ended) {
  has_ended = co_await EndsBy(loop, loop.SteadyNow() + limit, "work", std::move(task));
}

TEST_F(VirtualTimeTest, AWaitSaysWhetherItEndedInTime) {
  Event event;
  bool is_over = false;
  std::optional<bool> in_time, too_late;
  group.Spawn("in time",
              RecordWhetherItEnds(loop, seconds(10), SleepThenSet(loop, seconds(5), is_over), in_time));
  group.Spawn("too late", RecordWhetherItEnds(loop, seconds(10), event.Wait(), too_late));
  Advance(seconds(10));
  EXPECT_EQ(in_time, true);
  EXPECT_EQ(too_late, false);
  EXPECT_FALSE(clock.has_timers());
}

// Neither a lost connection nor a time-out inside the task is taken for the end of the wait.
TEST_F(VirtualTimeTest, AWaitPassesOnErrors) {
  log::Capture capture;
  std::optional<bool> has_ended;
  group.Spawn("first",
              RecordWhetherItEnds(loop, seconds(10), Throw(Error(Verdict::kRetry, "lost")), has_ended));
  Event event;
  Task<> inner = WithDeadline(loop, clock.SteadyNow() + seconds(1), "the inner one", event.Wait());
  group.Spawn("second", RecordWhetherItEnds(loop, seconds(10), std::move(inner), has_ended));
  Advance(seconds(1));
  EXPECT_EQ(capture.Count("first failed: lost"), 1);
  EXPECT_EQ(capture.Count("second failed: the inner one timed out"), 1);
  EXPECT_FALSE(has_ended);
}

TEST_F(VirtualTimeTest, DeadlinesOfTheSameMomentDoNotDisturbEachOther) {
  Event event;
  std::optional<bool> outer, inner;
  Task<> waits = RecordWhetherItEnds(loop, seconds(10), event.Wait(), inner);
  group.Spawn("nested", RecordWhetherItEnds(loop, seconds(10), std::move(waits), outer));
  testing::RunReady(loop);
  clock.AdvanceTo(clock.SteadyNow() + seconds(10));  // both before any task runs
  testing::RunReady(loop);
  EXPECT_NE(inner, true);
  EXPECT_TRUE(outer);
  EXPECT_EQ(group.size(), 0u);
}

TEST_F(VirtualTimeTest, AWaitIsCancelledOnlyOnce) {
  Event event;
  std::optional<bool> has_ended;
  group.Spawn("waits", RecordWhetherItEnds(loop, seconds(10), event.Wait(), has_ended));
  Advance(seconds(9));
  group.CancelAll();
  clock.AdvanceTo(clock.SteadyNow() + seconds(1));
  Advance(seconds(1));
  EXPECT_FALSE(has_ended);
  EXPECT_EQ(group.size(), 0u);
}

TEST_F(VirtualTimeTest, ATaskThatIsCancelledEarlyBeginsAndItsFirstWaitIsCancelled) {
  Event never;
  std::vector<std::string> seen;
  auto run = [](Event& e, std::vector<std::string>& s) -> Task<> {
    ScopeExit undo([&] { s.push_back("undone"); });
    s.push_back("begun");
    co_await e.Wait();
    s.push_back("not reached");
  };
  TaskGroup::TaskId first = group.Spawn("first", run(never, seen));
  group.Spawn("second", run(never, seen));
  group.Cancel(first);
  group.CancelAll();
  EXPECT_THAT(seen, ::testing::IsEmpty());
  testing::RunReady(loop);
  EXPECT_THAT(seen, ::testing::UnorderedElementsAre("begun", "undone", "begun", "undone"));
  EXPECT_EQ(group.size(), 0u);
}

TEST_F(VirtualTimeTest, ATaskThatIsCancelledEarlyMayEndWithoutAWait) {
  int ended = 0;
  auto run = [](int& n) -> Task<> {
    ++n;
    co_return;
  };
  group.Spawn("short", run(ended));
  RunToEnd(loop, group.Stop());
  EXPECT_EQ(ended, 1);
}

TEST_F(VirtualTimeTest, ATimeOutHasAVerdictOfItsOwn) {
  Event event;
  std::optional<Verdict> verdict;
  auto run = [](Loop& l, Event& e, std::optional<Verdict>& v) -> Task<> {
    try {
      co_await WithDeadline(l, l.SteadyNow() + seconds(10), "work", e.Wait());
    } catch (const Error& error) {
      v = error.verdict();
    }
  };
  group.Spawn("deadline", run(loop, event, verdict));
  Advance(seconds(10));
  EXPECT_EQ(verdict, Verdict::kTimedOut);
}

TEST_F(VirtualTimeTest, DeadlinePassesOnErrorsAtOnce) {
  log::Capture capture;
  auto run = [](Loop& l) -> Task<> {
    co_await WithDeadline(l, l.SteadyNow() + seconds(10), "work", Throw(Error(Verdict::kQuota, "full")));
  };
  group.Spawn("deadline", run(loop));
  testing::RunReady(loop);
  EXPECT_EQ(capture.Count("deadline failed: full"), 1);
}

TEST_F(VirtualTimeTest, DeadlineIsCancelledWithItsCaller) {
  auto run = [](Loop& l) -> Task<> {
    co_await WithDeadline(l, l.SteadyNow() + seconds(10), "work", SleepThenReturn(l, seconds(5), 7));
  };
  group.Spawn("deadline", run(loop));
  testing::RunReady(loop);
  RunToEnd(loop, group.Stop());
  EXPECT_FALSE(clock.has_timers());
}

TEST_F(VirtualTimeTest, CleanUpMayIgnoreCancellation) {
  bool cleaned = false;
  Event never;
  auto run = [](Loop& l, Event& e, bool& c) -> Task<> {
    try {
      co_await e.Wait();
    } catch (...) {
    }
    co_await IgnoreCancellation();
    co_await l.SleepFor(seconds(1));
    c = true;
  };
  group.Spawn("cleanup", run(loop, never, cleaned));
  testing::RunReady(loop);
  group.CancelAll();
  Advance(seconds(1));
  EXPECT_TRUE(cleaned);
}

TEST_F(VirtualTimeTest, QueueKeepsOrder) {
  Queue<int> queue;
  std::vector<int> seen;
  auto run = [](Queue<int>& q, std::vector<int>& s) -> Task<> {
    for (int i = 0; i < 3; ++i) {
      int item = co_await q.Pop();
      s.push_back(item);
    }
  };
  group.Spawn("pop", run(queue, seen));
  queue.Push(1);
  testing::RunReady(loop);
  queue.Push(2);
  queue.Push(3);
  testing::RunReady(loop);
  EXPECT_EQ(seen, (std::vector<int>{1, 2, 3}));
}

Task<> WaitForStep(Progress& progress, std::uint64_t number, std::vector<std::uint64_t>& woken) {
  co_await progress.WaitFor(number);
  woken.push_back(number);
}

TEST_F(VirtualTimeTest, ProgressWakesTheTasksWhoseNumberIsReached) {
  Progress progress("a step");
  std::vector<std::uint64_t> woken;
  for (std::uint64_t number : {3, 1, 2, 3, 0}) group.Spawn("wait", WaitForStep(progress, number, woken));
  testing::RunReady(loop);
  EXPECT_EQ(woken, std::vector<std::uint64_t>({0}));
  progress.Reach(2);
  progress.Reach(1);
  EXPECT_EQ(woken.size(), 1u) << "never inside the call";
  testing::RunReady(loop);
  EXPECT_EQ(woken, std::vector<std::uint64_t>({0, 1, 2}));
  group.Spawn("late", WaitForStep(progress, 2, woken));
  testing::RunReady(loop);
  EXPECT_EQ(woken.back(), 2u);
  progress.Reach(10);
  testing::RunReady(loop);
  EXPECT_EQ(woken, std::vector<std::uint64_t>({0, 1, 2, 2, 3, 3}));
}

// Each step runs a fixed number of handlers, however many tasks wait for later ones.
TEST_F(VirtualTimeTest, AStepOfProgressCostsOnlyTheTasksItWakes) {
  Progress progress("a step");
  std::vector<std::uint64_t> woken;
  for (std::uint64_t number = 1; number <= 1000; ++number)
    group.Spawn("wait", WaitForStep(progress, number, woken));
  testing::RunReady(loop);
  progress.Reach(1);
  std::size_t alone = testing::RunReady(loop);
  for (std::uint64_t number = 2; number <= 1000; ++number) {
    progress.Reach(number);
    EXPECT_LE(testing::RunReady(loop), alone);
  }
  EXPECT_EQ(woken.size(), 1000u);
}

TEST_F(VirtualTimeTest, ACancelledTaskWaitsForNoStep) {
  Progress progress("a step");
  std::vector<std::uint64_t> woken;
  group.Spawn("wait", WaitForStep(progress, 1, woken));
  testing::RunReady(loop);
  RunToEnd(loop, group.Stop());
  progress.Reach(1);
  testing::RunReady(loop);
  EXPECT_TRUE(woken.empty());
}

TEST(BackoffTest, GrowsToItsMaximumAndResets) {
  SeededRandom random(3);
  Backoff backoff({milliseconds(100), seconds(1), 2.0, 0.0}, random);
  EXPECT_EQ(backoff.Next(), milliseconds(100));
  EXPECT_EQ(backoff.Next(), milliseconds(200));
  for (int i = 0; i < 10; ++i) backoff.Next();
  EXPECT_EQ(backoff.Next(), seconds(1));
  backoff.Reset();
  EXPECT_EQ(backoff.Next(), milliseconds(100));
}

TEST(SystemLoopTest, SleepsInRealTime) {
  Loop loop;
  SteadyTime before = loop.SteadyNow();
  RunToEnd(loop, loop.SleepFor(milliseconds(5)));
  EXPECT_GE(loop.SteadyNow() - before, milliseconds(5));
}

TEST(BlockingPoolTest, RunsElsewhereAndReturnsResultOrError) {
  Loop loop;
  BlockingPool pool(1);
  auto elsewhere = RunToEnd(loop, OnBlockingPool(pool, [] { return std::this_thread::get_id(); }));
  EXPECT_NE(elsewhere, std::this_thread::get_id());
  auto fail = [] { throw Error(Verdict::kNotFound, "no host"); };
  EXPECT_THROW(RunToEnd(loop, OnBlockingPool(pool, fail)), Error);
}

TEST(BlockingPoolTest, WithoutThreadsItWorksInVirtualTime) {
  nodepool::testing::VirtualTime time;
  BlockingPool pool(0);
  EXPECT_EQ(time.Run(OnBlockingPool(pool, [] { return std::this_thread::get_id(); })),
            std::this_thread::get_id());
}

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

TEST_F(AsyncValueTest, IsLoadedOnceForAllThatWait) {
  int first = 0, second = 0;
  EXPECT_EQ(value.Find(), std::nullopt);
  group.Spawn("first", GetInto(first));
  group.Spawn("second", GetInto(second));
  time.Run(group.Join());
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
  EXPECT_EQ(value.Find(), 1);
}

TEST_F(AsyncValueTest, AFailureIsNotStored) {
  fault = true;
  EXPECT_THROW(time.Run(value.Get()), Error);
  fault = false;
  EXPECT_EQ(time.Run(value.Get()), 2);
}

TEST_F(AsyncValueTest, AValueLoadedBeforeAClearIsNotStored) {
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
