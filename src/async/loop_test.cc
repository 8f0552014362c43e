#include "async/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <semaphore>

#include "async/blocking_pool.h"
#include "async/task.h"
#include "async/task_group.h"
#include "async/testing/virtual_time.h"
#include "base/error.h"

namespace nodepool {

namespace {

using Seen = std::vector<std::string>;

Task<std::thread::id> ThreadOf() { co_return std::this_thread::get_id(); }

Task<> CheckThreads(LoopThread& other, std::thread::id& there, std::thread::id& after) {
  there = co_await other.Run(ThreadOf);
  after = std::this_thread::get_id();
}

TEST(LoopThreadTest, RunsTasksThereAndResumesHere) {
  Loop loop;
  LoopThread other("other loop");
  std::thread::id there, after;
  RunToEnd(loop, CheckThreads(other, there, after));
  EXPECT_NE(there, std::this_thread::get_id());
  EXPECT_EQ(after, std::this_thread::get_id());
}

Task<> Fail() {
  throw Error(Verdict::kConflict, "taken");
  co_return;
}

TEST(LoopThreadTest, ErrorsReachTheCaller) {
  Loop loop;
  LoopThread other("other loop");
  Outcome<> outcome = RunToEnd(loop, Attempt(other.Run(Fail)));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().verdict(), Verdict::kConflict);
  EXPECT_EQ(outcome.error().message(), "taken");
}

Task<> ThroughThePool(BlockingPool& pool, std::thread::id& after) {
  auto nothing = [] {};
  co_await OnBlockingPool(pool, nothing);
  after = std::this_thread::get_id();
}

// What a task of the loop awaits resumes on that loop's thread.
TEST(LoopThreadTest, TasksThereStayThere) {
  Loop loop;
  LoopThread other("other loop");
  BlockingPool pool(1);
  std::thread::id there = RunToEnd(loop, other.Run(ThreadOf));
  std::thread::id after;
  auto through = [&] { return ThroughThePool(pool, after); };
  RunToEnd(loop, other.Run(through));
  EXPECT_EQ(after, there);
}

TEST(LoopThreadTest, EndsWhileATimerIsArmed) {
  LoopThread other("other loop");
  bool was_called = false;
  other.loop().clock().CallAt(other.loop().SteadyNow() + std::chrono::hours(1), [&] { was_called = true; });
  other.End();
  other.End();
  EXPECT_FALSE(was_called);
}

// Each loop turns while the other does not.
TEST(LoopThreadTest, ABlockedLoopDoesNotDelayTheOther) {
  Loop loop;
  LoopThread other("other loop");
  std::binary_semaphore is_blocked(0), may_go_on(0);
  boost::asio::post(other.loop().context(), [&] {
    is_blocked.release();
    may_go_on.acquire();
  });
  is_blocked.acquire();
  RunToEnd(loop, loop.SleepFor(std::chrono::milliseconds(1)));
  may_go_on.release();
  EXPECT_NE(RunToEnd(loop, other.Run(ThreadOf)), std::this_thread::get_id());
}

struct LoopWithoutLocks {
  std::string name;
  Seen& seen;
  void Start() { seen.push_back(name + " starts"); }
  Task<> Stop() {
    seen.push_back(name + " stops");
    co_return;
  }
};

struct LoopWithLocks : LoopWithoutLocks {
  void SessionLost() { seen.push_back(name + " drops"); }
};

TEST(LoopsTest, StartInTheirOrderStopInTheOppositeOneAndThoseWithLocksDropTheirWork) {
  testing::VirtualTime time;
  Seen seen;
  LoopWithLocks builds{{"builds", seen}};
  LoopWithoutLocks statistics{"statistics", seen};
  Loops loops;
  loops.Add("builds", builds);
  loops.Add("statistics", statistics);
  loops.Start();
  loops.SessionLost();
  StopSteps steps(time.loop(), log::Logger("test"), time.loop().SteadyNow() + std::chrono::seconds(1));
  time.Run(loops.Stop(steps));
  EXPECT_THAT(seen, ::testing::ElementsAre("builds starts", "statistics starts", "builds drops",
                                           "statistics stops", "builds stops"));
}

}  // namespace

}  // namespace nodepool
