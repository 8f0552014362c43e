#include "builder/builder_fixture_for_test.h"

namespace nodepool::builder {
namespace {

using ::testing::ElementsAre;
using namespace std::chrono_literals;

// B-start-stop
TEST_F(BuilderTest, StoppedAsSoonAsItHasStarted) {
  SteadyTime start = time_.loop().SteadyNow();
  for (int i = 0; i < 3; ++i) {
    Host& host = Start("nb" + std::to_string(i));
    Stop(host);
    EXPECT_EQ(host.runner.running, 0);
  }
  EXPECT_LE(time_.loop().SteadyNow() - start, 10s);
}

// D-41
TEST_F(BuilderTest, AStopEndsTheBuildAndSaysThatItFailed) {
  Host& host = Start();
  time_.Advance(1min);
  Stop(host);
  EXPECT_EQ(host.runner.ended_count, 1);
  EXPECT_EQ(Builds().at(0).record.state, ImageState::kFailed);
  EXPECT_THAT(Builds().at(0).record.formats, ElementsAre());
  std::optional<zk::HeldLock> lock = time_.Run(store_->images.TryLock(ImageName("debian")));
  EXPECT_TRUE(lock);
  time_.Run(store_->tree.Unlock(*lock));
}

// D-41
TEST_F(BuilderTest, ACancelledBuildLeavesNoTemporaryDirectories) {
  Host& host = Start();
  time_.Advance(1min);
  ASSERT_EQ(host.runner.running, 1);
  ASSERT_THAT(host.files.temporary, ElementsAre());
  Stop(host);
  EXPECT_EQ(host.runner.ended_count, 1);
  EXPECT_THAT(host.files.temporary, ElementsAre()) << "the builder has ended, and no sweep follows";
}

// D-41: the option
TEST_F(BuilderTest, AStopWaitsForRunningBuildsIfConfigured) {
  finishes_work_ = true;
  workers_.builds = 1;
  diskimages_ = "[{name: debian}, {name: other}]";
  providers_ = Provider("cloud", "{name: debian}, {name: other}");
  Load();
  Host& host = Start();
  time_.Advance(1min);
  ASSERT_EQ(host.runner.running, 1);
  Stop(host);
  EXPECT_EQ(host.runner.ended_count, 0);
  EXPECT_EQ(host.runner.ran.size(), 1u) << "no other build begins";
  EXPECT_EQ(Builds(ImageState::kReady).size(), 1u);
  EXPECT_TRUE(Uploads().empty()) << "nor an upload";
}

TEST_F(BuilderTest, AStopWaitsForUploadsIfConfigured) {  // D-41
  finishes_work_ = true;
  Host& host = Start();
  ASSERT_TRUE(Await([&] { return !Builds().empty(); }));
  ChangeCloud([](drivers::FakeSimulation& settings) { settings.upload_latency = 5min; });
  ASSERT_TRUE(Await([&] { return !Uploads(ImageState::kUploading).empty(); }));
  Stop(host);
  EXPECT_EQ(Uploads(ImageState::kReady).size(), 1u);
}

TEST_F(BuilderTest, AStopDoesNotWaitOnceTheSessionIsLost) {  // D-41
  finishes_work_ = true;
  Host& host = Start();
  time_.Advance(1min);
  SteadyTime start = time_.loop().SteadyNow();
  TaskGroup stopping(time_.loop(), log::Logger("test"));
  stopping.Spawn("stop", host.builder->Stop());
  time_.Advance(1min);
  EXPECT_EQ(host.runner.running, 1);
  zk_.ExpireSession(*host.client);
  time_.Run(stopping.Join());
  EXPECT_EQ(host.runner.ended_count, 1);
  EXPECT_LE(time_.loop().SteadyNow() - start, 5min);
}

TEST_F(BuilderTest, AStopEndsThoughZooKeeperIsAway) {
  Host& host = Start();
  time_.Advance(1min);
  zk_.Disconnect(*host.client);
  SteadyTime start = time_.loop().SteadyNow();
  Stop(host);
  EXPECT_LE(time_.loop().SteadyNow() - start, 10min);
}

}  // namespace
}  // namespace nodepool::builder
