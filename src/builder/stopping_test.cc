#include "builder/builder_fixture_for_test.h"
#include "builder/context.h"

namespace nodepool::builder {

namespace {

using ::testing::ElementsAre;
using Fault = testing::FaultyZk::Fault;
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

// A builder whose session ends at its n-th write, before or after the effect, for every n: its successor
// reaches the same result, with nothing left over.
class BuilderCrashTest : public BuilderTest, public ::testing::WithParamInterface<Fault> {
 protected:
  // Runs a builder until its n-th write; false if it needed fewer.
  bool RunUntilWrite(Host& host, std::size_t n) {
    std::size_t writes = 0;
    bool is_reached = false;
    host.recorder->FailWhen([&](const testing::FaultyZk::Call& call) {
      if (is_reached) return Fault::kBefore;
      if (!call.is_write || writes++ < n) return Fault::kNone;
      is_reached = true;
      return GetParam();
    });
    auto is_done = [&] { return is_reached || Uploads(ImageState::kReady).size() == 1; };
    EXPECT_TRUE(Await(is_done));
    return is_reached;
  }
  void ExpectGoodEnd(Host& host, std::size_t n) {
    EXPECT_TRUE(AwaitUploads(1)) << "write " << n;
    time_.Advance(std::chrono::minutes(3));
    EXPECT_EQ(Builds(ImageState::kReady).size(), Builds().size()) << "write " << n;
    EXPECT_EQ(Uploads().size(), 1u) << "write " << n;
    for (const std::string& name : host.files.names) {
      EXPECT_TRUE(time_.Run(store_->images.BuildExists(ParseLocalName(name)->build)))
          << "write " << n << ": " << name;
    }
  }
};

TEST_P(BuilderCrashTest, WhateverIsLeftIsTakenOver) {
  bool is_over = false;
  for (std::size_t n = 0; n < 100 && !is_over; ++n) {
    Host& host = Start("nb" + std::to_string(n));
    is_over = !RunUntilWrite(host, n);
    Kill(host);
    Restart(host);
    ExpectGoodEnd(host, n);
    // From the beginning with the next.
    for (const store::StoredBuild& build : Builds()) {
      store::StoredBuild marked = build;
      auto mark = [](ImageBuild& record) {
        record.state = ImageState::kDeleting;
        return store::Change::kWrite;
      };
      time_.Run(store_->images.Pause(ImageName("debian")));
      time_.Run(store_->images.UpdateUnlocked(marked, mark));
    }
    EXPECT_TRUE(Await([&] { return Builds().empty() && host.files.names.empty(); })) << "write " << n;
    Stop(host);
    time_.Run(store_->images.Unpause(ImageName("debian")));
  }
  EXPECT_TRUE(is_over) << "a build and an upload take fewer writes";
}

INSTANTIATE_TEST_SUITE_P(Faults, BuilderCrashTest, ::testing::Values(Fault::kBefore, Fault::kAfter));

// Stores the last values that it received.
class Recorder : public metrics::Sink {
 public:
  void Set(const metrics::Metric& gauge, const metrics::LabelValues& labels, double value) override {
    values[metrics::KeyOf(gauge, labels)] = value;
  }
  void Add(const metrics::Metric& counter, const metrics::LabelValues& labels, std::int64_t by) override {
    values[metrics::KeyOf(counter, labels) + " count"] += static_cast<double>(by);
  }
  void Observe(const metrics::Metric& timing, const metrics::LabelValues& labels, Duration took) override {
    values[metrics::KeyOf(timing, labels) + " seconds"] = std::chrono::duration<double>(took).count();
  }
  std::map<std::string, double> values;
};

class BuilderStatsTest : public BuilderTest {
 protected:
  BuilderStatsTest() { metrics_ = metrics::Metrics(&recorder_, nullptr); }
  std::map<std::string, double>& values() { return recorder_.values; }

  Recorder recorder_;
};

// builder.md 15.1; B-failed-build
TEST_F(BuilderStatsTest, BuildsAndUploadsAreMeasured) {
  Host& host = Start();
  ASSERT_TRUE(Await([&] { return !Builds().empty(); }));
  ChangeCloud([](drivers::FakeSimulation& settings) { settings.upload_latency = 90s; });
  ASSERT_TRUE(AwaitUploads(1));
  std::string build = "nodepool.dib_image_build.debian.";
  EXPECT_EQ(values()[build + "qcow2.size"], 4096);
  EXPECT_EQ(values()[build + "status.rc"], 0);
  EXPECT_NEAR(values()[build + "status.duration seconds"], 600, 1);
  EXPECT_NEAR(values()[build + "status.last_build"], ToSeconds(Builds()[0].record.state_time), 2);
  EXPECT_NEAR(values()["nodepool.image_update.debian.cloud seconds"], 90, 1);
  EXPECT_EQ(values()["nodepool.image_update.debian.cloud count"], 1);
  host.runner.next_code = [] { return 127; };
  host.runner.build_time = 5min;
  time_.Run(store_->images.RequestBuild(ImageName("debian")));
  time_.Advance(15min);
  EXPECT_EQ(values()[build + "status.rc"], 127);
  EXPECT_NEAR(values()[build + "status.duration seconds"], 300, 1);
}

// B-build-only
TEST_F(BuilderStatsTest, ABuildThatNoProviderWants) {
  diskimages_ = "[{name: debian, formats: [tar]}]";
  providers_ = "";
  Load();
  Start();
  ASSERT_TRUE(Await([&] { return !Builds(ImageState::kReady).empty(); }));
  EXPECT_EQ(Builds()[0].record.formats, std::vector<std::string>{"tar"});
  std::string build = "nodepool.dib_image_build.debian.";
  EXPECT_EQ(values()[build + "tar.size"], 4096);
  EXPECT_EQ(values().at(build + "status.rc"), 0);
  EXPECT_NEAR(values()[build + "status.last_build"], ToSeconds(Builds()[0].record.state_time), 2);
}

// B-formats
TEST_F(BuilderStatsTest, FormatsOfTwoProviders) {
  diskimages_ = "[{name: debian}, {name: fedora}]";
  providers_ = Provider("cloud", "{name: debian}") +
               Provider("other", "{name: fedora}", "simulation: {image-format: vhd}");
  Load();
  Start();
  ASSERT_TRUE(AwaitUploads(1));
  ASSERT_TRUE(Await([&] { return Uploads("fedora", "other").size() == 1; }));
  time_.Advance(2min);
  EXPECT_EQ(Builds("debian").at(0).record.formats, std::vector<std::string>{"qcow2"});
  EXPECT_EQ(Builds("fedora").at(0).record.formats, std::vector<std::string>{"vhd"});
  EXPECT_EQ(values()["nodepool.dib_image_build.debian.qcow2.size"], 4096);
  EXPECT_EQ(values()["nodepool.dib_image_build.fedora.vhd.size"], 4096);
  std::string own = "nodepool.builder.nb01.example.org.image.";
  EXPECT_EQ(values().at(own + "debian.build.state"), 0);
  EXPECT_EQ(values().at(own + "debian.provider.cloud.upload.state"), 0);
  EXPECT_EQ(values().at(own + "fedora.provider.other.upload.state"), 0);
}

// builder.md 15.2; B-cli-status
TEST_F(BuilderStatsTest, StatesAreReportedOnceAMinute) {
  providers_ = Provider("cloud", "{name: debian}") + Provider("other", "{name: debian, pause: true}");
  Load();
  Start();
  std::string own = "nodepool.builder.nb01.example.org.";
  std::string image = own + "image.debian.";
  time_.Advance(2min);
  EXPECT_EQ(values()[image + "build.state"], 1);
  EXPECT_EQ(values()[image + "provider.cloud.upload.state"], 0);
  EXPECT_EQ(values()[image + "provider.other.upload.state"], 3);
  EXPECT_EQ(values()[own + "current_builds"], 1);
  EXPECT_EQ(values()[own + "upload_workers"], 4);
  ChangeCloud([](drivers::FakeSimulation& settings) { settings.upload_latency = 1h; });
  time_.Advance(10min);
  EXPECT_EQ(values()[image + "build.state"], 0);
  EXPECT_EQ(values()[image + "provider.cloud.upload.state"], 2);
  time_.Run(store_->images.Pause(ImageName("debian")));
  time_.Run(store_->images.RequestBuild(ImageName("debian")));
  time_.Advance(2min);
  EXPECT_EQ(values()[image + "build.state"], 3);
  EXPECT_EQ(values()["nodepool.image.debian.image_build_requests"], 1);
  EXPECT_EQ(values()["nodepool.image_build_requests"], 1);
}

}  // namespace

}  // namespace nodepool::builder
