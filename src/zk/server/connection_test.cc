#include "zk/server/connection.h"

#include <gtest/gtest.h>

#include "async/task_group.h"
#include "async/testing/virtual_time.h"

namespace nodepool::zk::server {

namespace {

using std::chrono::milliseconds;

class TurnTest : public ::testing::Test {
 protected:
  testing::VirtualTime time;
  Loop& loop = time.loop();
  Gate gate{1};
};

TEST_F(TurnTest, OneShortRequestNeedsNone) {
  Turn turn(loop, gate);
  EXPECT_TRUE(turn.Covers(false));
  EXPECT_FALSE(turn.Covers(false));
}

TEST_F(TurnTest, ALongRequestNeedsOne) {
  Turn turn(loop, gate);
  EXPECT_FALSE(turn.Covers(true));
}

TEST_F(TurnTest, ItEndsAfterSomeMilliseconds) {
  Turn turn(loop, gate);
  time.Run(turn.Begin());
  EXPECT_TRUE(turn.Covers(true));
  time.Advance(milliseconds(4));
  EXPECT_TRUE(turn.Covers(true));
  time.Advance(milliseconds(1));
  EXPECT_FALSE(turn.Covers(true));
}

Task<> BeginAndNote(Turn& turn, std::string name, std::string& order) {
  co_await turn.Begin();
  order += name;
  turn.End();
}

TEST_F(TurnTest, OneClientAtATimeHasATurn) {
  Turn first(loop, gate), second(loop, gate), third(loop, gate);
  std::string order;
  time.Run(first.Begin());
  TaskGroup tasks(loop, log::Logger("test"));
  tasks.Spawn("second", BeginAndNote(second, "2", order));
  tasks.Spawn("third", BeginAndNote(third, "3", order));
  time.Advance(milliseconds(1));
  EXPECT_EQ(order, "");
  first.End();
  EXPECT_FALSE(first.Covers(true));
  time.Advance(milliseconds(0));
  EXPECT_EQ(order, "23");
  time.Run(tasks.Join());
}

}  // namespace

}  // namespace nodepool::zk::server
