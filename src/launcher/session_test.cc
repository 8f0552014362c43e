#include "launcher/launcher_fixture_for_test.h"

namespace nodepool::launcher {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class SessionTest : public LauncherTest {};

// BB-30, LA-81, coordination.17.5
TEST_F(SessionTest, LostSessionDropsEverythingAndRecovers) {
  script().launch_time = seconds(20);
  Running& running = StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kPending));
  std::string before = Children("/nodepool/components/pool").at(0);
  std::string launcher_id = *Read(Nodes()[0])->launcher;
  zk_.ExpireSession(*running.client);
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled, minutes(5)));
  EXPECT_TRUE(Await([&] { return Nodes().size() == 1; })) << "the abandoned launch's node is deleted";
  auto pools = Children("/nodepool/components/pool");
  ASSERT_EQ(pools.size(), 1u);
  EXPECT_NE(pools[0], before) << "a new sequence number";
  EXPECT_EQ(NodeOf(id).launcher, launcher_id) << "the same id";
}

TEST_F(SessionTest, TheLauncherIsNotReadyWithoutZooKeeper) {  // D-64
  Running& running = StartLauncher();
  ASSERT_TRUE(running.launcher->is_ready());
  zk_.Disconnect(*running.client);
  time_.Advance(seconds(1));
  EXPECT_FALSE(running.launcher->is_ready());
  EXPECT_EQ(running.launcher->WhyNotReady(), "ZooKeeper cannot be reached.");
  zk_.Reconnect(*running.client);
  EXPECT_TRUE(Await([&] { return running.launcher->is_ready(); }));
}

// No event announces a deletion that a lost session interrupted before it held the lock; the sweep finds the
// node.
TEST_F(SessionTest, InterruptedDeletionIsTakenUpAgain) {
  Running& running = StartLauncher();
  for (int i = 0; i < 20; ++i) {
    AddNode(NodeState::kUsed);
    zk_.ExpireSession(*running.client);
  }
  EXPECT_TRUE(Await([&] { return Nodes().empty(); }, minutes(5)));
}

TEST_F(SessionTest, ShortInterruptionCostsNothing) {
  script().launch_time = seconds(20);
  Running& running = StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kPending));
  zk_.Disconnect(*running.client);
  time_.Advance(seconds(5));
  zk_.Reconnect(*running.client);
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled, seconds(30)));
  EXPECT_EQ(script().launches, 1);
}

// D-05: what another launcher has taken over meanwhile is not touched.
TEST_F(SessionTest, LauncherThatComesBackWritesNothingUnderItsOldLocks) {
  script().launch_time = seconds(60);
  Running& sleeper = StartLauncher("np01");
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kPending));
  zk_.Disconnect(*sleeper.client);
  zk_.ExpireSession(*sleeper.client);
  script().launch_time = seconds(0);
  StartLauncher("np02");
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  NodeRequest served = *Read(id);
  zk_.Reconnect(*sleeper.client);
  time_.Advance(minutes(5));
  EXPECT_EQ(ToJson(*Read(id)), ToJson(served));
  EXPECT_EQ(Nodes(), served.nodes);
}

}  // namespace
}  // namespace nodepool::launcher
