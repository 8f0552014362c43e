#include "drivers/libvirt/host/call_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <memory>

#include "async/task_group.h"

namespace nodepool::drivers::libvirt {
namespace {

constexpr Duration kAmple = std::chrono::seconds(60);
constexpr Duration kShort = std::chrono::milliseconds(1);

// A call that returns when it is let go.
struct Blocked {
  std::shared_ptr<std::latch> gate = std::make_shared<std::latch>(1);
  int operator()() const {
    gate->wait();
    return 7;
  }
};

class CallThreadsTest : public ::testing::Test {
 protected:
  template <class Work>
  Failure FailureOf(Work work, Duration limit = kAmple) {
    auto outcome = RunToEnd(loop, Attempt(threads.Run("a call", limit, work)));
    EXPECT_FALSE(outcome.has_value());
    return outcome.error();
  }

  Loop loop;
  CallThreads threads{loop, 2};
};

TEST_F(CallThreadsTest, ReturnWhatTheWorkReturns) {
  EXPECT_EQ(RunToEnd(loop, threads.Run("a call", kAmple, [] { return std::string("answer"); })), "answer");
  bool has_run = false;
  RunToEnd(loop, threads.Run("a call", kAmple, [&] { has_run = true; }));
  EXPECT_TRUE(has_run);
}

TEST_F(CallThreadsTest, ThrowWhatTheWorkThrows) {
  Failure failure = FailureOf([]() -> int { throw Error(Verdict::kNotFound, "no volume x"); });
  EXPECT_EQ(failure.verdict(), Verdict::kNotFound);
  EXPECT_EQ(failure.message(), "no volume x");
}

// LV-32
TEST_F(CallThreadsTest, ACallThatDoesNotReturnEndsForItsCallerAndStallsTheHost) {
  Blocked blocked;
  EXPECT_EQ(FailureOf(blocked, kShort).verdict(), Verdict::kRetry);
  Failure refused = FailureOf([] { return 1; });
  EXPECT_EQ(refused.verdict(), Verdict::kRetry);
  EXPECT_THAT(refused.message(), ::testing::HasSubstr("a call has not ended"));
  blocked.gate->count_down();
  RunToEnd(loop, threads.Drain(loop.SteadyNow() + kAmple));
  EXPECT_EQ(threads.Overdue(), std::nullopt);
  EXPECT_EQ(RunToEnd(loop, threads.Run("a call", kAmple, [] { return 1; })), 1);
}

// LV-32
TEST_F(CallThreadsTest, DrainingEndsAtItsDeadline) {
  Blocked blocked;
  FailureOf(blocked, kShort);
  RunToEnd(loop, threads.Drain(loop.SteadyNow() + kShort));
  EXPECT_NE(threads.Overdue(), std::nullopt);
  blocked.gate->count_down();
}

// LV-32
TEST(AbandonedCalls, MayReturnWhenNothingIsThereAnyMore) {
  Blocked blocked;
  {
    Loop loop;
    CallThreads threads(loop, 1);
    auto outcome = RunToEnd(loop, Attempt(threads.Run("a call", kShort, blocked)));
    EXPECT_FALSE(outcome);
  }
  blocked.gate->count_down();
}

}  // namespace
}  // namespace nodepool::drivers::libvirt
