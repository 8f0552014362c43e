#include "launcher/launcher_fixture_for_test.h"

namespace nodepool::launcher {
namespace {

using std::chrono::seconds;

class StopTest : public LauncherTest {
 protected:
  // Stops a launcher during a deletion that takes `delete_time`; returns how long the stop took.
  Duration StopWhileDeleting(Duration delete_time) {
    script().delete_time = delete_time;
    Running& running = StartLauncher();
    AddNode(NodeState::kUsed);
    EXPECT_TRUE(Await([&] { return script().deletions == 1; }));
    SteadyTime before = time_.loop().SteadyNow();
    StopLauncher(running);
    return time_.loop().SteadyNow() - before;
  }
};

TEST_F(StopTest, GivesRequestsBack) {  // D-24
  script().launch_time = std::chrono::hours(1);
  Running& running = StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kPending));
  StopLauncher(running);
  EXPECT_EQ(Read(id)->state, RequestState::kRequested);
  EXPECT_TRUE(Read(id)->declined_by.empty());
  EXPECT_FALSE(IsLocked(Nodes()[0]));
}

// Also requests that wait for capacity; the nodes that they already have become free.
TEST_F(StopTest, NodesOfUnfinishedRequestsBecomeFree) {  // D-24
  AddPool("cloud", "main", {"small", "large"}).max_servers = 2;
  Running& running = StartLauncher();
  auto nodes = Use({"large"});
  RequestId id = Request({"small", "small"});
  ASSERT_TRUE(Await([&] { return IsPaused() && NodesIn(NodeState::kReady).size() == 1; }));
  StopLauncher(running);
  EXPECT_EQ(Read(id)->state, RequestState::kRequested);
  EXPECT_EQ(FreeNodes(), 1);
  EXPECT_FALSE(IsLocked(NodesIn(NodeState::kReady)[0]));
  EXPECT_THAT(Children("/nodepool/components/pool"), ::testing::IsEmpty());
  EXPECT_THAT(Children("/nodepool/components/launcher"), ::testing::IsEmpty());
  EXPECT_THAT(Children("/nodepool/requests-lock/" + id.value), ::testing::IsEmpty());
}

TEST_F(StopTest, EndsWhenZooKeeperIsAway) {  // D-24
  script().launch_time = std::chrono::hours(1);
  Running& running = StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kPending));
  zk_.Disconnect(*running.client);
  SteadyTime before = time_.loop().SteadyNow();
  StopLauncher(running);
  EXPECT_LE(time_.loop().SteadyNow() - before, seconds(40));
}

TEST_F(StopTest, DeletionsUnderWayAreFinished) {  // BB-34
  StopWhileDeleting(seconds(5));
  EXPECT_TRUE(Nodes().empty());
}

TEST_F(StopTest, TheTimeOfAGracefulStopIsASetting) {  // D-24
  config_->common.graceful_stop = seconds(4);
  EXPECT_LE(StopWhileDeleting(std::chrono::hours(1)), seconds(5));
}

TEST_F(StopTest, ALauncherThatStopsIsNotReady) {
  Running& running = StartLauncher();
  EXPECT_TRUE(running.launcher->is_ready());
  zk_.SetLatency(seconds(1));
  TaskGroup group(time_.loop(), log::Logger("test"));
  group.Spawn("stop", running.launcher->Stop());
  time_.Advance(seconds(1));
  EXPECT_FALSE(running.launcher->is_ready());
  EXPECT_EQ(running.launcher->WhyNotReady(), "The launcher is starting or stopping.");
  time_.Run(group.Join());
}

TEST_F(StopTest, EndsWhenACloudHangs) {  // D-24
  EXPECT_LE(StopWhileDeleting(std::chrono::hours(1)), seconds(40));
  EXPECT_EQ(NodesIn(NodeState::kDeleting).size(), 1u) << "left to the next launcher";
  EXPECT_FALSE(IsLocked(Nodes()[0]));
}

}  // namespace
}  // namespace nodepool::launcher
