#include "web/access/attempts.h"

#include <gtest/gtest.h>

namespace nodepool::web {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// REQ-17
TEST(AttemptsTest, EachFailureDoublesThePause) {
  Attempts attempts;
  SteadyTime now{};
  EXPECT_EQ(attempts.PauseOf("a", now), Duration::zero());
  for (int pause : {250, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000}) {
    attempts.Failed("a", now);
    EXPECT_EQ(attempts.PauseOf("a", now), milliseconds(pause));
    now += milliseconds(pause);
    EXPECT_EQ(attempts.PauseOf("a", now), Duration::zero());
  }
  EXPECT_EQ(attempts.PauseOf("b", now), Duration::zero());
  attempts.Failed("a", now);
  now += minutes(11);
  attempts.Failed("b", now);
  EXPECT_EQ(attempts.size(), 1u) << "what is old is removed";
}

// REQ-17
TEST(AttemptsTest, MemoryIsBounded) {
  Attempts attempts;
  SteadyTime now{};
  for (int i = 0; i < 10'000; ++i) attempts.Failed(std::to_string(i), now + seconds(i % 60));
  EXPECT_EQ(attempts.size(), Attempts::kMaxKeys);
}

}  // namespace
}  // namespace nodepool::web
